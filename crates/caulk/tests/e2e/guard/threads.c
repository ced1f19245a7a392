// Every thread loses, keeps and hands over blocks of its own; a second one releases what it was handed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 4, rounds = 500 };

static void *consume(void *data) {
    size_t length = strlen(data);
    free(data);
    return (void *)length;
}

static size_t hand_over(int i) {
    char *text = malloc(32);
    pthread_t other;
    void *length;
    if (!text)
        return 0;
    sprintf(text, "handed over %d", i);
    if (pthread_create(&other, NULL, consume, text))
        abort();
    pthread_join(other, &length);
    return (size_t)length;
}

static size_t lose(int i) {
    char *text = malloc(32);
    if (!text)
        return 0;
    sprintf(text, "lost %d", i);
    return strlen(text);
}

static void *work(void *data) {
    size_t sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += lose(i);
    for (int i = 0; i < 4; i++)
        sum += hand_over(i);
    *(size_t *)data = sum;
    return NULL;
}

int main(void) {
    pthread_t all[threads];
    size_t sums[threads];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, work, &sums[i]))
            abort();
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        printf("%zu\n", sums[i]);
    }
    return 0;
}
