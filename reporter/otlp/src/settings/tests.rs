use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingError> {
    Settings::from_env(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    })
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    read(variables).unwrap().unwrap()
}

#[test]
fn without_variables_the_standard_defaults_apply() {
    let settings = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]);
    assert_eq!(settings.endpoint, "http://localhost:4318/v1/metrics");
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!(settings.interval, Duration::from_mins(1));
    assert_eq!(settings.protocol, Protocol::Protobuf);
    assert!(settings.headers.is_empty() && settings.resource.is_empty());
    assert_eq!((settings.certificate, settings.identity), (None, None));
}

#[test]
fn variable_for_metrics_comes_before_the_one_for_all() {
    let settings = settings(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all:1/"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://metrics:2/own?x=1"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
        ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.pem"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "b=2"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ]);
    assert_eq!(settings.endpoint, "https://metrics:2/own?x=1");
    assert_eq!(settings.timeout, Duration::from_secs(2));
    assert_eq!(settings.protocol, Protocol::Json);
    assert_eq!(settings.certificate, Some("/all.pem".into()));
    assert_eq!(settings.interval, Duration::from_millis(500));
    let headers: Vec<_> =
        settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    assert_eq!(headers, [("b", &b"2"[..])]);
}

#[test]
fn endpoint_for_all_signals_is_extended_by_the_path() {
    for given in ["https://host:1/base", "https://host:1/base/"] {
        let settings = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", given)]);
        assert_eq!(settings.endpoint, "https://host:1/base/v1/metrics");
    }
}

#[test]
fn headers_are_decoded_and_secret() {
    let given = "api-key=a%20b%3D, x-tenant = c ,";
    let settings = settings(&[("OTEL_EXPORTER_OTLP_HEADERS", given)]);
    let values: Vec<_> = settings.headers.iter().map(|(_, value)| value.as_bytes()).collect();
    assert_eq!(values, [&b"a b="[..], b"c"]);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("a b=") && shown.contains("api-key"), "{shown}");
}

#[test]
fn name_of_the_service_comes_before_its_attribute() {
    let resource = settings(&[
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,team=b%2Cc"),
        ("OTEL_SERVICE_NAME", "d"),
    ])
    .resource;
    let expected = [("service.name", "d"), ("team", "b,c")];
    assert_eq!(resource, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn metrics_that_are_switched_off_have_no_settings() {
    assert_eq!(
        read(&[("OTEL_SDK_DISABLED", "True"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "?")]).unwrap(),
        None
    );
    assert_eq!(read(&[("OTEL_METRICS_EXPORTER", "none")]).unwrap(), None);
    assert!(read(&[("OTEL_SDK_DISABLED", "false")]).unwrap().is_some());
}

#[test]
fn bad_value_is_named_with_variable_and_allowed_values() {
    for (name, value, shown) in [
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "localhost:4318",
            "\"localhost:4318\": expected an address",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://a:b@host", "\"host\": expected an address"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "\"10s\": expected milliseconds from 1 "),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "\"0\": expected milliseconds from 1 "),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1", "\"1\": expected milliseconds from 100 "),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "\"grpc\": expected http/protobuf or http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api key=secret", "\"api key\": expected names with values"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret", "\"\": expected names with values"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0Ab", "\"a\": expected names with values"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team", "\"team\": expected names with values"),
    ] {
        let said = read(&[(name, value)]).unwrap_err().to_string();
        assert!(said.starts_with(&format!("invalid {name} {shown}")), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

proptest! {
    #[test]
    fn any_value_is_parsed_without_panic(bytes in any::<Vec<u8>>()) {
        drop(Settings::from_env(|_| Some(OsString::from_vec(bytes.clone()))));
    }
}
