// Declarations for type checks, not an implementation.
public import Foundation

public let LAErrorDomain = "com.apple.LocalAuthentication"

public enum LAPolicy: Int, Sendable {
  case deviceOwnerAuthenticationWithBiometrics = 1
  case deviceOwnerAuthentication = 2
}

public enum LABiometryType: Int, Sendable {
  case none = 0
  case touchID = 1
  case faceID = 2
  case opticID = 4
}

// Not `Sendable` here, so that code which needs it to be is found.
open class LAContext: NSObject {
  open func canEvaluatePolicy(_ policy: LAPolicy, error: NSErrorPointer) -> Bool { fatalError() }
  open func evaluatePolicy(
    _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) { fatalError() }
  open func invalidate() { fatalError() }
  open var biometryType: LABiometryType { fatalError() }
  open var interactionNotAllowed: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var localizedReason: String {
    get { fatalError() }
    set { fatalError() }
  }
}
