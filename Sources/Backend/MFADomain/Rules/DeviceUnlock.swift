extension Policy {
  /// How a person unlocks the devices that may be enrolled and sign in.
  public enum Unlock: String, Sendable, Hashable {
    case any
    /// Only by biometry: neither the passcode nor a code by SMS is accepted.
    ///
    /// The app reports how a key is unlocked. The gate proves the app, not the key: a genuine copy of an app that
    /// reports truthfully does so here, and a debug build may report anything.
    case biometric
  }

  /// - Throws: unless a device with this method, unlocked in this way, may be enrolled. The same for every name.
  func checkUnlock(_ method: MFAMethod, _ authMethod: AuthMethod?) throws(InvalidValue) {
    guard deviceUnlock == .biometric else { return }
    guard method == .secureEnclave else {
      throw InvalidValue(field: "method", rule: "is secureEnclave here: this server accepts devices with biometry only")
    }
    guard authMethod == .biometric else {
      throw InvalidValue(
        field: "authMethod", rule: "is biometric here: this server accepts devices with biometry only")
    }
  }

  /// Whether `device` may sign in. It may have been enrolled before the policy was.
  func admits(_ device: Device) -> Bool {
    deviceUnlock == .any || (device.method == .secureEnclave && device.authMethod == .biometric)
  }
}
