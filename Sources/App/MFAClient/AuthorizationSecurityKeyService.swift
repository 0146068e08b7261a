#if canImport(AuthenticationServices)
  public import AuthenticationServices
  internal import ByteCoding
  public import MFAWire

  /// The security keys of a real device, plugged in or by NFC: Apple's `ASAuthorizationController`.
  ///
  /// The app has the entitlement `com.apple.developer.associated-domains` with `webcredentials:` and the domain of the
  /// relying party, which lists the app in its `apple-app-site-association`. A cancelled task dismisses the prompt.
  public struct AuthorizationSecurityKeyService: SecurityKeyService {
    private let anchor: @MainActor @Sendable () -> ASPresentationAnchor

    /// Creates a service.
    ///
    /// - Parameter anchor: The window over which the system shows its prompt.
    public init(anchor: @escaping @MainActor @Sendable () -> ASPresentationAnchor) { self.anchor = anchor }

    /// Makes a credential on a security key.
    public func register(_ options: CredentialCreationOptions) async throws(SecurityKeyError) -> RegistrationRequest {
      let answer = try await SecurityKeyPrompt.answer(over: anchor) { () throws(SecurityKeyError) in
        let provider = ASAuthorizationSecurityKeyPublicKeyCredentialProvider(relyingPartyIdentifier: options.rp.id)
        let request = provider.createCredentialRegistrationRequest(
          challenge: try bytes(options.challenge), displayName: options.user.displayName, name: options.user.name,
          userID: try bytes(options.user.id))
        request.credentialParameters = [ASAuthorizationPublicKeyCredentialParameters(algorithm: .ES256)]
        request.excludedCredentials = try descriptors(options.excludeCredentials)
        request.userVerificationPreference = .init(rawValue: options.authenticatorSelection.userVerification)
        return request
      }
      guard let attestation = answer.attestation else { throw .other("The security key gave no attestation object.") }
      let id = Base64URL.encode(answer.credentialID)
      return RegistrationRequest(
        id: id, rawId: id, type: "public-key",
        response: .init(
          clientDataJSON: Base64URL.encode(answer.clientData), attestationObject: Base64URL.encode(attestation)))
    }

    /// Signs the challenge with a security key.
    public func prove(_ options: CredentialRequestOptions) async throws(SecurityKeyError) -> AuthenticationRequest {
      let answer = try await SecurityKeyPrompt.answer(over: anchor) { () throws(SecurityKeyError) in
        let provider = ASAuthorizationSecurityKeyPublicKeyCredentialProvider(relyingPartyIdentifier: options.rpId)
        let request = provider.createCredentialAssertionRequest(challenge: try bytes(options.challenge))
        request.allowedCredentials = try descriptors(options.allowCredentials)
        request.userVerificationPreference = .init(rawValue: options.userVerification)
        return request
      }
      let id = Base64URL.encode(answer.credentialID)
      return AuthenticationRequest(
        id: id, rawId: id, type: "public-key",
        response: .init(
          clientDataJSON: Base64URL.encode(answer.clientData),
          authenticatorData: Base64URL.encode(answer.authenticatorData), signature: Base64URL.encode(answer.signature),
          userHandle: answer.userID.isEmpty ? nil : Base64URL.encode(answer.userID)))
    }
  }

  private func bytes(_ text: String) throws(SecurityKeyError) -> Data {
    guard let bytes = Base64URL.decode(text) else { throw .other("The server's options are not base64url.") }
    return Data(bytes)
  }

  private func descriptors(
    _ credentials: [CredentialDescriptor]
  ) throws(SecurityKeyError) -> [ASAuthorizationSecurityKeyPublicKeyCredentialDescriptor] {
    typealias Descriptor = ASAuthorizationSecurityKeyPublicKeyCredentialDescriptor
    var descriptors: [Descriptor] = []
    for credential in credentials {
      descriptors.append(
        Descriptor(credentialID: try bytes(credential.id), transports: Descriptor.Transport.allSupported))
    }
    return descriptors
  }

  /// One prompt of the system, and its answer.
  @MainActor private final class SecurityKeyPrompt: NSObject {
    struct Answer: Sendable {
      var credentialID: [UInt8]
      var clientData: [UInt8]
      var attestation: [UInt8]?
      var authenticatorData: [UInt8] = []
      var signature: [UInt8] = []
      var userID: [UInt8] = []
    }

    private let anchor: ASPresentationAnchor
    private var controller: ASAuthorizationController?
    private var continuation: CheckedContinuation<Result<Answer, SecurityKeyError>, Never>?

    private init(anchor: ASPresentationAnchor) { self.anchor = anchor }

    static func answer(
      over anchor: @MainActor @Sendable () -> ASPresentationAnchor,
      to makeRequest: @MainActor () throws(SecurityKeyError) -> ASAuthorizationRequest
    ) async throws(SecurityKeyError) -> Answer {
      let prompt = SecurityKeyPrompt(anchor: anchor())
      let request = try makeRequest()
      let result = await withTaskCancellationHandler {
        await withCheckedContinuation { prompt.perform(request, $0) }
      } onCancel: {
        Task { @MainActor in prompt.controller?.cancel() }
      }
      return try result.get()
    }

    private func perform(
      _ request: ASAuthorizationRequest, _ continuation: CheckedContinuation<Result<Answer, SecurityKeyError>, Never>
    ) {
      guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
      let controller = ASAuthorizationController(authorizationRequests: [request])
      (self.controller, self.continuation) = (controller, continuation)
      controller.delegate = self
      controller.presentationContextProvider = self
      controller.performRequests()
    }

    private func finish(_ result: Result<Answer, SecurityKeyError>) {
      continuation?.resume(returning: result)
      (controller, continuation) = (nil, nil)
    }
  }

  extension SecurityKeyPrompt: ASAuthorizationControllerDelegate {
    func authorizationController(
      controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization
    ) {
      switch authorization.credential {
      case let made as any ASAuthorizationPublicKeyCredentialRegistration:
        finish(
          .success(
            Answer(
              credentialID: [UInt8](made.credentialID), clientData: [UInt8](made.rawClientDataJSON),
              attestation: made.rawAttestationObject.map { [UInt8]($0) })))
      case let proof as any ASAuthorizationPublicKeyCredentialAssertion:
        finish(
          .success(
            Answer(
              credentialID: [UInt8](proof.credentialID), clientData: [UInt8](proof.rawClientDataJSON),
              authenticatorData: [UInt8](proof.rawAuthenticatorData), signature: [UInt8](proof.signature),
              userID: [UInt8](proof.userID))))
      default: finish(.failure(.other("The system answered with another kind of credential.")))
      }
    }

    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error) {
      let isCancelled = (error as? ASAuthorizationError)?.code == .canceled
      finish(.failure(isCancelled ? .cancelled : .other(error.localizedDescription)))
    }
  }

  extension SecurityKeyPrompt: ASAuthorizationControllerPresentationContextProviding {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor { anchor }
  }
#endif
