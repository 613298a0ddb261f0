use super::*;

fn files(folder: &Path) -> KeyFiles {
    let (key, certificate) = create("a", folder).unwrap();
    let (_, trusted) = create("c", folder).unwrap();
    KeyFiles { key, certificate, trusted }
}

#[test]
fn new_keys_can_be_used_and_are_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    files.read().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files.key), mode(&files.certificate)), (0o600, 0o644));
    let before = fs::read(&files.key).unwrap();
    let error = create("a", folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("a.key: File exists (os error 17)"), "{error}");
    assert_eq!(fs::read(&files.key).unwrap(), before);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o640)).unwrap();
    let error = files.read().unwrap_err();
    let key = files.key.display();
    assert_eq!(error, format!("{key}: found mode 0640, expected 0600: run 'chmod 600 {key}'"));
}

#[test]
fn errors_name_the_file_and_never_show_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let good = files(folder.path());
    let refused = |change: fn(&mut KeyFiles)| {
        let mut files = good.clone();
        change(&mut files);
        let error = files.read().unwrap_err();
        assert!(!error.contains('\n') && !error.contains("PRIVATE"), "{error}");
        error
    };
    // Each case confuses two of the three files.
    let error = refused(|files| files.trusted = files.key.clone());
    assert!(error.ends_with("a.key: found no certificate, expected at least one in PEM format"), "{error}");
    let error = refused(|files| files.certificate = files.trusted.clone());
    assert!(error.contains("a.key: does not fit"), "{error}");
    let error = refused(|files| files.trusted = "/none".into());
    assert!(error.starts_with("/none: No such file"), "{error}");
    fs::write(&good.key, "").unwrap();
    let error = refused(|_| ());
    assert!(error.ends_with("a.key: found no private key, expected one in PEM format"), "{error}");
}
