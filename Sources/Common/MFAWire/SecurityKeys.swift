/// The response of `POST /auth/webauthn/registration/options`: `PublicKeyCredentialCreationOptionsJSON` of Web
/// Authentication Level 3, as `PublicKeyCredential.parseCreationOptionsFromJSON` accepts it.
public struct CredentialCreationOptions: WireValue {
  /// The relying party: the service that the key is registered for.
  public struct RelyingParty: WireValue {
    /// The domain of the relying party.
    public var id: String
    /// The name that the client shows.
    public var name: String

    /// Creates the value.
    public init(id: String, name: String) {
      self.id = id
      self.name = name
    }

    public static let schema = JSONSchema.object([.required("id", .text), .required("name", .text)])
  }

  /// The user of the account.
  public struct User: WireValue {
    /// The user handle, in base64url.
    public var id: String
    /// The username.
    public var name: String
    /// The name that the client shows.
    public var displayName: String

    /// Creates the value.
    public init(id: String, name: String, displayName: String) {
      self.id = id
      self.name = name
      self.displayName = displayName
    }

    public static let schema = JSONSchema.object([
      .required("id", .base64URL(atMost: 64)), .required("name", .text), .required("displayName", .text),
    ])
  }

  /// One signature algorithm that the server accepts.
  public struct Parameter: WireValue {
    /// Always `public-key`.
    public var type: String
    /// The COSE number of the algorithm.
    public var alg: Int

    /// Creates the value.
    public init(alg: Int) {
      type = "public-key"
      self.alg = alg
    }

    public static let schema = JSONSchema.object([.required("type", .credentialType), .required("alg", .integer())])
  }

  /// What the authenticator has to offer.
  public struct Selection: WireValue {
    /// Whether the authenticator stores the credential itself (a discoverable credential).
    public var residentKey: String
    /// Whether `residentKey` is `required`; for clients of Level 1.
    public var requireResidentKey: Bool
    /// Whether the authenticator verifies its user: `required`, `preferred` or `discouraged`.
    public var userVerification: String

    /// Creates the value.
    public init(residentKey: String, userVerification: String) {
      self.residentKey = residentKey
      requireResidentKey = residentKey == "required"
      self.userVerification = userVerification
    }

    public static let schema = JSONSchema.object([
      .required("residentKey", .text), .required("requireResidentKey", .boolean),
      .required("userVerification", .userVerification),
    ])
  }

  /// The relying party.
  public var rp: RelyingParty
  /// The user.
  public var user: User
  /// The challenge: 32 bytes in base64url.
  public var challenge: String
  /// The accepted algorithms, the preferred one first.
  public var pubKeyCredParams: [Parameter]
  /// The time that the user has, in milliseconds.
  public var timeout: Int
  /// The credentials that the user has already registered.
  public var excludeCredentials: [CredentialDescriptor]
  /// What the authenticator has to offer.
  public var authenticatorSelection: Selection
  /// Always `none`.
  public var attestation: String

  /// Creates the value.
  public init(
    rp: RelyingParty, user: User, challenge: String, pubKeyCredParams: [Parameter], timeout: Int,
    excludeCredentials: [CredentialDescriptor], authenticatorSelection: Selection, attestation: String
  ) {
    self.rp = rp
    self.user = user
    self.challenge = challenge
    self.pubKeyCredParams = pubKeyCredParams
    self.timeout = timeout
    self.excludeCredentials = excludeCredentials
    self.authenticatorSelection = authenticatorSelection
    self.attestation = attestation
  }

  public static let schema = JSONSchema.object([
    .required("rp", RelyingParty.schema), .required("user", User.schema), .required("challenge", .challenge),
    .required("pubKeyCredParams", .array(Parameter.schema), "The preferred algorithm first."),
    .required("timeout", .integer(minimum: 1), "Milliseconds."),
    .required("excludeCredentials", .array(CredentialDescriptor.schema), "Credentials that the user has registered."),
    .required("authenticatorSelection", Selection.schema), .required("attestation", .constant("none")),
  ])
}

/// A credential: `PublicKeyCredentialDescriptorJSON`.
public struct CredentialDescriptor: WireValue {
  /// Always `public-key`.
  public var type: String
  /// The credential id, in base64url.
  public var id: String
  /// The transports that the client reported at registration, such as `usb` or `nfc`.
  public var transports: [String]?

  /// Creates the value.
  public init(id: String, transports: [String]?) {
    type = "public-key"
    self.id = id
    self.transports = transports
  }

  public static let schema = JSONSchema.object([
    .required("type", .credentialType), .required("id", .credentialID), .optional("transports", .array(.text)),
  ])
}

/// The response of `POST /auth/webauthn/authentication/options`: `PublicKeyCredentialRequestOptionsJSON`, as
/// `PublicKeyCredential.parseRequestOptionsFromJSON` accepts it.
public struct CredentialRequestOptions: WireValue {
  /// The challenge: 32 bytes in base64url.
  public var challenge: String
  /// The time that the user has, in milliseconds.
  public var timeout: Int
  /// The domain of the relying party.
  public var rpId: String
  /// The credentials of the user.
  public var allowCredentials: [CredentialDescriptor]
  /// Whether the authenticator verifies its user: `required`, `preferred` or `discouraged`.
  public var userVerification: String

  /// Creates the value.
  public init(
    challenge: String, timeout: Int, rpId: String, allowCredentials: [CredentialDescriptor], userVerification: String
  ) {
    self.challenge = challenge
    self.timeout = timeout
    self.rpId = rpId
    self.allowCredentials = allowCredentials
    self.userVerification = userVerification
  }

  public static let schema = JSONSchema.object([
    .required("challenge", .challenge), .required("timeout", .integer(minimum: 1), "Milliseconds."),
    .required("rpId", .text), .required("allowCredentials", .array(CredentialDescriptor.schema)),
    .required("userVerification", .userVerification),
  ])
}

/// The request of `POST /auth/webauthn/registration`: `RegistrationResponseJSON`, as `PublicKeyCredential.toJSON`
/// returns it, and a name. Other members are ignored.
public struct RegistrationRequest: WireValue {
  /// The answer of the authenticator. Binary values are in base64url.
  public struct Response: WireValue {
    /// The client data that the client hashed.
    public var clientDataJSON: String
    /// The attestation object, with the authenticator data and the new public key.
    public var attestationObject: String
    /// The transports that the authenticator supports.
    public var transports: [String]?

    /// Creates the response.
    public init(clientDataJSON: String, attestationObject: String, transports: [String]? = nil) {
      self.clientDataJSON = clientDataJSON
      self.attestationObject = attestationObject
      self.transports = transports
    }

    public static let schema = JSONSchema.object([
      .required("clientDataJSON", .base64URL(atMost: 8192)),
      .required("attestationObject", .base64URL(atMost: 16384)),
      .optional("transports", .array(.text), "Returned to clients in later options. The server does not use it."),
    ])
  }

  /// The credential id, in base64url.
  public var id: String
  /// The same as `id`.
  public var rawId: String
  /// Always `public-key`.
  public var type: String
  /// The answer of the authenticator.
  public var response: Response
  /// The name that the user gives the key.
  public var name: String?

  /// Creates the request.
  public init(id: String, rawId: String, type: String, response: Response, name: String? = nil) {
    self.id = id
    self.rawId = rawId
    self.type = type
    self.response = response
    self.name = name
  }

  public static let schema = JSONSchema.object([
    .required("id", .credentialID), .required("rawId", .credentialID, "The same as id."),
    .required("type", .credentialType), .required("response", Response.schema),
    .optional("name", .deviceModel, "The name that the user gives the key."),
  ])
}

/// The request of `POST /auth/webauthn/authentication`: `AuthenticationResponseJSON`, as `PublicKeyCredential.toJSON`
/// returns it, and the two trust fields of `POST /auth/mfa/verify-login`. Other members are ignored.
public struct AuthenticationRequest: WireValue {
  /// The answer of the authenticator. Binary values are in base64url.
  public struct Response: WireValue {
    /// The client data that the client hashed.
    public var clientDataJSON: String
    /// The authenticator data that the signature covers.
    public var authenticatorData: String
    /// The signature over the authenticator data and the hash of the client data.
    public var signature: String
    /// The user handle that the authenticator stores, if it stores one.
    public var userHandle: String?

    /// Creates the response.
    public init(clientDataJSON: String, authenticatorData: String, signature: String, userHandle: String? = nil) {
      self.clientDataJSON = clientDataJSON
      self.authenticatorData = authenticatorData
      self.signature = signature
      self.userHandle = userHandle
    }

    public static let schema = JSONSchema.object([
      .required("clientDataJSON", .base64URL(atMost: 8192)),
      .required("authenticatorData", .base64URL(atMost: 4096)), .required("signature", .base64URL(atMost: 1024)),
      .optional("userHandle", .nullable(.string(maxLength: 86)), "An empty text counts as absent."),
    ])
  }

  /// The credential id, in base64url.
  public var id: String
  /// The same as `id`.
  public var rawId: String
  /// Always `public-key`.
  public var type: String
  /// The answer of the authenticator.
  public var response: Response
  /// Whether to trust this device for 30 days.
  public var trust_device: Bool?
  /// The name of the device in the list of trusted devices.
  public var device_name: String?

  /// Creates the request.
  public init(
    id: String, rawId: String, type: String, response: Response, trustDevice: Bool? = nil, deviceName: String? = nil
  ) {
    self.id = id
    self.rawId = rawId
    self.type = type
    self.response = response
    trust_device = trustDevice
    device_name = deviceName
  }

  public static let schema = JSONSchema.object([
    .required("id", .credentialID), .required("rawId", .credentialID, "The same as id."),
    .required("type", .credentialType), .required("response", Response.schema),
    .optional("trust_device", .boolean, "Trust this device for 30 days, without the second factor."),
    .optional("device_name", .deviceModel),
  ])
}

/// A registered security key, as its user sees it.
public struct SecurityKeyEntry: WireValue {
  /// The id of the key in this service.
  public var id: String
  /// The credential id, in base64url.
  public var credentialId: String
  /// The name that the user gave the key.
  public var name: String
  /// The COSE number of the algorithm: -7 ES256, -8 EdDSA, -257 RS256.
  public var algorithm: Int
  /// The transports that the client reported at registration.
  public var transports: [String]
  /// Whether the authenticator reports that the credential is backed up.
  public var backedUp: Bool
  /// The time of registration, ISO 8601 in UTC.
  public var createdAt: String
  /// The time of the last sign-in, ISO 8601 in UTC; `null` before the first.
  @Nullable public var lastUsedAt: String?

  /// Creates the entry.
  public init(
    id: String, credentialId: String, name: String, algorithm: Int, transports: [String], backedUp: Bool,
    createdAt: String, lastUsedAt: String?
  ) {
    self.id = id
    self.credentialId = credentialId
    self.name = name
    self.algorithm = algorithm
    self.transports = transports
    self.backedUp = backedUp
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
  }

  public static let schema = JSONSchema.object([
    .required("id", .uuid), .required("credentialId", .credentialID), .required("name", .text),
    .required("algorithm", .integer(), "The COSE number: -7 ES256, -8 EdDSA, -257 RS256."),
    .required("transports", .array(.text)),
    .required("backedUp", .boolean, "Whether the authenticator reports that the credential is backed up."),
    .required("createdAt", .time), .required("lastUsedAt", .nullable(.time)),
  ])
}

/// The response of `GET /auth/webauthn/keys`.
public struct SecurityKeyList: WireValue {
  /// The security keys, oldest first.
  public var keys: [SecurityKeyEntry]

  /// Creates the response.
  public init(keys: [SecurityKeyEntry]) { self.keys = keys }

  public static let schema = JSONSchema.object([.required("keys", .array(SecurityKeyEntry.schema))])
}

/// The request of `DELETE /auth/webauthn/keys/{id}`.
public struct SecurityKeyRequest: WireValue {
  /// The id of the key in this service.
  public var id: String

  /// Creates the request.
  public init(id: String) { self.id = id }

  public static let schema = JSONSchema.object([.required("id", .uuid)])
}

/// The request of `POST /auth/webauthn/keys/rename`.
public struct RenameKeyRequest: WireValue {
  /// The id of the key in this service.
  public var id: String
  /// The new name.
  public var name: String

  /// Creates the request.
  public init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  public static let schema = JSONSchema.object([.required("id", .uuid), .required("name", .deviceModel)])
}

extension JSONSchema {
  /// Base64url without padding of at most `bytes` bytes.
  fileprivate static func base64URL(atMost bytes: Int) -> JSONSchema {
    .string(minLength: 2, maxLength: (bytes * 4 + 2) / 3, pattern: "^[A-Za-z0-9_-]+$")
  }

  fileprivate static let credentialID = base64URL(atMost: 1023)
  fileprivate static let challenge = string(minLength: 43, maxLength: 43, pattern: "^[A-Za-z0-9_-]+$")
  fileprivate static let userVerification = oneOf(["required", "preferred", "discouraged"])
  /// The only credential type of Web Authentication.
  fileprivate static let credentialType = constant("public-key")
}
