import Foundation
import Wire
import Testing

@testable import OIDCClient

@Suite("Errors that an app shows")
struct ManagerErrorTests {
  private static let shown: [(AuthenticationError, AuthenticationError.Category)] = [
    (.invalidCredentials, .authentication), (.networkError(underlying: TransportError.lost("secret reason")), .network),
    (.serverError(statusCode: 503), .network), (.configurationError("%@ why"), .configuration),
    (.keychainError(-25_293), .security), (.tokenExpired, .authentication),
    (.biometricAuthenticationFailed, .security),
  ]

  @Test("C-036, C-041 Each error has a text that says what to do", arguments: 0..<7)
  func texts(index: Int) throws {
    let error = Self.shown[index].0
    let text = try #require(error.errorDescription)
    #expect(text == error.localizedDescription && text.hasSuffix(".") && text.count > 20)
    if case .configurationError = error {
      #expect(text.contains("%@ why"))
    } else {
      #expect(!text.contains("%@"))
    }
    if case .keychainError = error { #expect(text.contains("-25293")) }
    if case .serverError = error { #expect(text.contains("503")) }
  }

  @Test("C-042 The text for people is generic, and the error keeps the detail")
  func detail() {
    let error = AuthenticationError(OIDCError.transport(.untrusted("certificate has expired")))
    #expect(error.errorDescription?.contains("certificate") == false)
    #expect("\(error)".contains("certificate has expired"))
  }

  @Test("C-040 Each error belongs to a category, and each category has an error")
  func categories() {
    for (error, category) in Self.shown { #expect(error.category == category, "\(error)") }
    #expect(SignInFieldError.allCases.allSatisfy { $0.category == .validation && $0.errorDescription != nil })
    #expect(Set(Self.shown.map(\.1) + [.validation]) == Set(AuthenticationError.Category.allCases))
  }

  private static let translated: [(OIDCError, String)] = [
    (.transport(.unreachable("x")), "network"), (.transport(.untrusted("x")), "network"),
    (.status(500, of: "x", retryAfter: nil), "server 500"), (.refused(.init(error: "invalid_grant")), "credentials"),
    (.refused(.init(error: "access_denied")), "credentials"), (.refused(.init(error: "mfa_required")), "configuration"),
    (.refused(.init(error: "invalid_client")), "configuration"), (.idToken(.nonce), "credentials"),
    (.refused(.init(error: "authorization_declined")), "credentials"),
    (.refused(.init(error: "interaction_required")), "credentials"),
    (.refused(.init(error: "login_required")), "credentials"),
    (.refused(.init(error: "server_error")), "server 500"),
    (.refused(.init(error: "temporarily_unavailable")), "server 503"),
    (.state, "credentials"), (.redirectIssuer(nil), "credentials"), (.deviceCodeExpired, "credentials"),
    (.malformed("x"), "configuration"), (.tooLarge("x"), "configuration"), (.redirected("x"), "configuration"),
    (.otherIssuer(expected: "x", found: "y"), "configuration"), (.notOffered("x"), "configuration"),
    (.tokenType("x"), "configuration"), (.clientKey("x"), "configuration"),
  ]

  @Test("C-023 Each error of an exchange has its error for an app", arguments: translated)
  func translation(error: OIDCError, name: String) {
    #expect(AuthenticationError(error).word == name)
    #expect(!error.code.isEmpty && !error.description.isEmpty && !error.description.hasSuffix("."))
  }

  @Test("Each error of a session and of a store has its error for an app")
  func sessions() {
    let sessions: [(SessionError, String)] = [
      (.notSignedIn, "expired"), (.signInNeeded(.noRefreshToken), "expired"), (.otherClient, "expired"),
      (.signInNeeded(.refused("x")), "credentials"), (.signInNeeded(.refusedAfterLostAnswer("x")), "credentials"),
      (.uncertain(.transport(.lost("x"))), "network"), (.provider(.state), "credentials"),
      (.postponed(5), "server 503"),
      (.store(.notRecognised), "biometry"), (.store(.damaged("x")), "keychain -26275"), (.busy, "network"),
    ]
    for (error, name) in sessions {
      #expect(AuthenticationError(error).word == name, "\(error)")
      #expect(!error.code.isEmpty && !error.description.hasSuffix("."))
    }
    let stores: [TokenStoreError] = [
      .file("f", reason: "r"), .damaged("f"), .unknownVersion("f"), .keyMissing("f"), .otherKey("f"),
      .keyExposed("f", mode: "644"),
    ]
    for error in stores {
      #expect(AuthenticationError(error).word == "keychain -26275")
      #expect(error.description.contains("f"))
    }
    #expect(AuthenticationError(TokenStoreError.keychain(-34_018)).word == "keychain -34018")
  }
}

extension AuthenticationError {
  var word: String {
    switch self {
    case .invalidCredentials: "credentials"
    case .networkError: "network"
    case .serverError(let status): "server \(status)"
    case .configurationError: "configuration"
    case .keychainError(let status): "keychain \(status)"
    case .tokenExpired: "expired"
    case .biometricAuthenticationFailed: "biometry"
    }
  }
}
