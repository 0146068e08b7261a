internal import ArgumentParser
internal import MFADomain
internal import MFASettings

/// Why a command did not do what it was told, in a line for people.
struct CommandFault: Error, CustomStringConvertible {
  let description: String

  init(_ error: any Error) {
    description =
      switch error {
      case Refusal.notFound: "no such account or device"
      case let value as InvalidValue: "\(value.field) \(value.rule)"
      case let fault as StoreFault: fault.reason
      case let fault as Vault.Unopenable: fault.reason
      case let fault as KeyEncryptionKeys.Malformed: fault.reason
      case let faults as SettingsFaults: faults.faults.map(\.description).joined(separator: "\n")
      default: "\(error)"
      }
  }
}
