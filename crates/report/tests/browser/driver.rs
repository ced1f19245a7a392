//! A small WebDriver client: as much as these tests need, over ChromeDriver.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a page may take to show what it should.
pub const PATIENCE: Duration = Duration::from_secs(30);

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One browser with one window.
pub struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: `scripts/setup browser`");
        let port = port(&mut driver);
        let profile = tempfile::tempdir().unwrap();
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut browser =
            Browser { driver, session: format!("http://127.0.0.1:{port}/session"), agent, _profile: profile };
        let mut arguments: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-prefers-reduced-motion",
            "--window-size=1400,1000",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--user-data-dir={}", browser._profile.path().display()));
        let made = browser.call(
            "",
            Some(json!({ "capabilities": { "alwaysMatch": {
                "browserName": "chrome",
                "goog:chromeOptions": { "args": arguments },
                "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            }}})),
        );
        let id = made["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser.cdp("Network.enable", json!({}));
        browser
    }

    /// Sends a command; `GET` without a body.
    fn call(&self, path: &str, body: Option<Value>) -> Value {
        self.ask(path, body).unwrap_or_else(|refusal| panic!("{path}: {refusal:#}"))
    }

    /// Sends a command that may be refused.
    fn ask(&self, path: &str, body: Option<Value>) -> Result<Value, Value> {
        let url = format!("{}{path}", self.session);
        let response = match body {
            Some(body) => self.agent.post(&url).send_json(body),
            None => self.agent.get(&url).call(),
        };
        let mut response = response.expect("chromedriver answers");
        let mut answer: Value = response.body_mut().read_json().expect("an answer in JSON");
        if response.status().is_success() { Ok(answer["value"].take()) } else { Err(answer) }
    }

    /// Chrome's own protocol.
    pub fn cdp(&self, command: &str, parameters: Value) -> Value {
        self.call("/goog/cdp/execute", Some(json!({ "cmd": command, "params": parameters })))
    }

    pub fn open(&self, page: &Path, anchor: &str) {
        self.call("/url", Some(json!({ "url": format!("file://{}{anchor}", page.display()) })));
    }

    pub fn reload(&self) {
        self.call("/refresh", Some(json!({})));
    }

    pub fn address(&self) -> String {
        self.call("/url", None).as_str().unwrap_or_default().to_owned()
    }

    /// The value of a JavaScript expression, promises awaited. While one page makes room for the next, or what is asked
    /// for is not there yet, it is asked again.
    pub fn eval(&self, expression: &str) -> Value {
        self.patiently("/execute/sync", json!({ "script": format!("return {expression};"), "args": [] }))
    }

    /// Sends a command until it is not refused, or patience ends.
    fn patiently(&self, path: &str, body: Value) -> Value {
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.ask(path, Some(body.clone())) {
                Ok(value) => return value,
                Err(refusal) if Instant::now() > patience => panic!("{path}: {body}: {refusal:#}"),
                Err(_) => std::thread::sleep(Duration::from_millis(25)),
            }
        }
    }

    pub fn text(&self, selector: &str) -> String {
        self.eval(&format!("document.querySelector({}).innerText", json!(selector))).as_str().unwrap().to_owned()
    }

    fn element(&self, selector: &str) -> String {
        let found = self.patiently("/element", json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    /// A real click, refused if something covers the element.
    pub fn click(&self, selector: &str) {
        self.call(&format!("/element/{}/click", self.element(selector)), Some(json!({})));
    }

    /// Chooses from the list called `name`.
    pub fn choose(&self, name: &str, value: &str) {
        self.click(&format!("select[name={name}] option[value='{value}']"));
    }

    /// Keys to whatever has the focus.
    pub fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        self.call("/actions", Some(json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] })));
    }

    /// A phone: narrow, and with touch.
    pub fn narrow(&self, width: u32) {
        let metrics = json!({ "width": width, "height": 740, "deviceScaleFactor": 2, "mobile": true });
        self.cdp("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub fn media(&self, name: &str, value: &str) {
        self.cdp("Emulation.setEmulatedMedia", json!({ "features": [{ "name": name, "value": value }] }));
    }

    /// What the console said, and every address that was asked for.
    pub fn finish(self) -> (Vec<String>, Vec<String>) {
        let console = self.call("/se/log", Some(json!({ "type": "browser" })));
        let console = console.as_array().into_iter().flatten().map(|entry| entry["message"].to_string()).collect();
        let network = self.call("/se/log", Some(json!({ "type": "performance" })));
        let mut asked = Vec::new();
        for entry in network.as_array().into_iter().flatten() {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap_or_default()).unwrap_or_default();
            let request = &event["message"]["params"];
            // The browser's own start page is not ours.
            let own = request["documentURL"].as_str().is_some_and(|page| page.starts_with("chrome://"));
            if event["message"]["method"] == "Network.requestWillBeSent" && !own {
                asked.push(request["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
        }
        (console, asked)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes the window; the driver is ours to end in any case.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port the driver chose.
fn port(driver: &mut Child) -> u16 {
    let output = driver.stdout.take().expect("piped");
    let mut lines = BufReader::new(output).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("started successfully on port ")?;
        rest.trim_end_matches('.').parse().ok()
    });
    // Read on, so that the driver never blocks on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    port.expect("chromedriver names its port")
}
