// Declarations for type checks, not an implementation.
@_exported public import Foundation

/// `UIWindow` on iPhones, `NSWindow` on Macs.
@MainActor open class UIWindow: NSObject {}
public typealias ASPresentationAnchor = UIWindow

public struct ASAuthorizationError: Error {
  public enum Code: Int, Sendable {
    case unknown = 1000
    case canceled = 1001
    case failed = 1004
  }
  public var code: Code { fatalError() }
}

// MARK: Requests

open class ASAuthorizationRequest: NSObject {}

public struct ASAuthorizationPublicKeyCredentialUserVerificationPreference: RawRepresentable, Hashable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
}

public struct ASCOSEAlgorithmIdentifier: RawRepresentable, Hashable, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let ES256 = Self(rawValue: -7)
}

open class ASAuthorizationPublicKeyCredentialParameters: NSObject {
  public init(algorithm: ASCOSEAlgorithmIdentifier) { fatalError() }
}

open class ASAuthorizationSecurityKeyPublicKeyCredentialDescriptor: NSObject {
  public struct Transport: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static var allSupported: [Self] { fatalError() }
  }
  public init(credentialID: Data, transports allowedTransports: [Transport]) { fatalError() }
}

open class ASAuthorizationSecurityKeyPublicKeyCredentialRegistrationRequest: ASAuthorizationRequest {
  open var credentialParameters: [ASAuthorizationPublicKeyCredentialParameters] {
    get { fatalError() }
    set { fatalError() }
  }
  open var excludedCredentials: [ASAuthorizationSecurityKeyPublicKeyCredentialDescriptor] {
    get { fatalError() }
    set { fatalError() }
  }
  open var userVerificationPreference: ASAuthorizationPublicKeyCredentialUserVerificationPreference {
    get { fatalError() }
    set { fatalError() }
  }
}

open class ASAuthorizationSecurityKeyPublicKeyCredentialAssertionRequest: ASAuthorizationRequest {
  open var allowedCredentials: [ASAuthorizationSecurityKeyPublicKeyCredentialDescriptor] {
    get { fatalError() }
    set { fatalError() }
  }
  open var userVerificationPreference: ASAuthorizationPublicKeyCredentialUserVerificationPreference {
    get { fatalError() }
    set { fatalError() }
  }
}

open class ASAuthorizationSecurityKeyPublicKeyCredentialProvider: NSObject {
  public init(relyingPartyIdentifier: String) { fatalError() }
  open func createCredentialRegistrationRequest(
    challenge: Data, displayName: String, name: String, userID: Data
  ) -> ASAuthorizationSecurityKeyPublicKeyCredentialRegistrationRequest { fatalError() }
  open func createCredentialAssertionRequest(
    challenge: Data
  ) -> ASAuthorizationSecurityKeyPublicKeyCredentialAssertionRequest { fatalError() }
}

// MARK: Answers

@objc public protocol ASAuthorizationCredential {}

public protocol ASPublicKeyCredential: ASAuthorizationCredential {
  var rawClientDataJSON: Data { get }
  var credentialID: Data { get }
}

public protocol ASAuthorizationPublicKeyCredentialRegistration: ASPublicKeyCredential {
  var rawAttestationObject: Data? { get }
}

public protocol ASAuthorizationPublicKeyCredentialAssertion: ASPublicKeyCredential {
  var rawAuthenticatorData: Data! { get }
  var signature: Data! { get }
  var userID: Data! { get }
}

open class ASAuthorization: NSObject {
  open var credential: any ASAuthorizationCredential { fatalError() }
}

// MARK: Controller

@MainActor @objc public protocol ASAuthorizationControllerDelegate: NSObjectProtocol {
  @objc optional func authorizationController(
    controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization)
  @objc optional func authorizationController(
    controller: ASAuthorizationController, didCompleteWithError error: any Error)
}

@MainActor @objc public protocol ASAuthorizationControllerPresentationContextProviding: NSObjectProtocol {
  func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor
}

@MainActor open class ASAuthorizationController: NSObject {
  public init(authorizationRequests: [ASAuthorizationRequest]) { fatalError() }
  open weak var delegate: (any ASAuthorizationControllerDelegate)? {
    get { fatalError() }
    set { fatalError() }
  }
  open weak var presentationContextProvider: (any ASAuthorizationControllerPresentationContextProviding)? {
    get { fatalError() }
    set { fatalError() }
  }
  open func performRequests() { fatalError() }
  open func cancel() { fatalError() }
}
