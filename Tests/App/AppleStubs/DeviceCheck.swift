// Declarations for type checks, not an implementation.
public import Foundation

open class DCAppAttestService: NSObject, @unchecked Sendable {
  open class var shared: DCAppAttestService { fatalError() }
  open var isSupported: Bool { fatalError() }
  open func generateKey() async throws -> String { fatalError() }
  open func attestKey(_ keyId: String, clientDataHash: Data) async throws -> Data { fatalError() }
  open func generateAssertion(_ keyId: String, clientDataHash: Data) async throws -> Data { fatalError() }
}

public struct DCError: Error {
  public enum Code: Int, Sendable {
    case unknownSystemFailure = 0
    case featureUnsupported = 1
    case invalidInput = 2
    case invalidKey = 3
    case serverUnavailable = 4
  }

  public var code: Code { fatalError() }
  public var localizedDescription: String { fatalError() }
}
