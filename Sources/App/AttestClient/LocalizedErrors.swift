public import Foundation

// Without these, `localizedDescription` is only the name of the type and a number.

extension AttestError: LocalizedError {
  public var errorDescription: String? { description }
}

extension UpgradeError: LocalizedError {
  public var errorDescription: String? {
    switch self {
    case .refused(let refusal): refusal.sentence
    case .transport(let error): error.description(of: "the gate")
    }
  }
}

extension GateRefusal: LocalizedError {
  public var errorDescription: String? { description }
}

extension KeyServiceError: LocalizedError {
  public var errorDescription: String? { description }
}

extension KeyStoreError: LocalizedError {
  public var errorDescription: String? { description }
}

extension SocketError: LocalizedError {
  public var errorDescription: String? { description }
}
