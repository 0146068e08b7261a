/// What `POST /auth/webauthn/registration/options` answers: `PublicKeyCredentialCreationOptionsJSON` of Web
/// Authentication Level 3, as `PublicKeyCredential.parseCreationOptionsFromJSON` takes it.
public struct CredentialCreationOptions: WireValue {
  public struct RelyingParty: WireValue {
    public var id: String
    public var name: String

    public init(id: String, name: String) {
      self.id = id
      self.name = name
    }

    public static let schema = JSONSchema.object([.required("id", .text), .required("name", .text)])
  }

  public struct User: WireValue {
    public var id: String
    public var name: String
    public var displayName: String

    public init(id: String, name: String, displayName: String) {
      self.id = id
      self.name = name
      self.displayName = displayName
    }

    public static let schema = JSONSchema.object([
      .required("id", .base64URL(atMost: 64)), .required("name", .text), .required("displayName", .text),
    ])
  }

  public struct Parameter: WireValue {
    public var type: String
    /// COSE's number of the algorithm.
    public var alg: Int

    public init(alg: Int) {
      type = "public-key"
      self.alg = alg
    }

    public static let schema = JSONSchema.object([.required("type", .credentialType), .required("alg", .integer())])
  }

  public struct Selection: WireValue {
    public var residentKey: String
    public var requireResidentKey: Bool
    public var userVerification: String

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

  public var rp: RelyingParty
  public var user: User
  public var challenge: String
  public var pubKeyCredParams: [Parameter]
  /// Milliseconds.
  public var timeout: Int
  public var excludeCredentials: [CredentialDescriptor]
  public var authenticatorSelection: Selection
  public var attestation: String

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
    .required("pubKeyCredParams", .array(Parameter.schema), "Those that are best first."),
    .required("timeout", .integer(minimum: 1), "Milliseconds."),
    .required("excludeCredentials", .array(CredentialDescriptor.schema), "Those that the user has already."),
    .required("authenticatorSelection", Selection.schema), .required("attestation", .constant("none")),
  ])
}

/// `PublicKeyCredentialDescriptorJSON`.
public struct CredentialDescriptor: WireValue {
  public var type: String
  public var id: String
  public var transports: [String]?

  public init(id: String, transports: [String]?) {
    type = "public-key"
    self.id = id
    self.transports = transports
  }

  public static let schema = JSONSchema.object([
    .required("type", .credentialType), .required("id", .credentialID), .optional("transports", .array(.text)),
  ])
}

/// What `POST /auth/webauthn/authentication/options` answers: `PublicKeyCredentialRequestOptionsJSON`, as
/// `PublicKeyCredential.parseRequestOptionsFromJSON` takes it.
public struct CredentialRequestOptions: WireValue {
  public var challenge: String
  /// Milliseconds.
  public var timeout: Int
  public var rpId: String
  public var allowCredentials: [CredentialDescriptor]
  public var userVerification: String

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

/// `POST /auth/webauthn/registration`: `RegistrationResponseJSON`, as `PublicKeyCredential.toJSON` gives it, and a name
/// beside it. Members that are not here are passed over.
public struct RegistrationRequest: WireValue {
  public struct Response: WireValue {
    public var clientDataJSON: String
    public var attestationObject: String
    public var transports: [String]?

    public init(clientDataJSON: String, attestationObject: String, transports: [String]? = nil) {
      self.clientDataJSON = clientDataJSON
      self.attestationObject = attestationObject
      self.transports = transports
    }

    public static let schema = JSONSchema.object([
      .required("clientDataJSON", .base64URL(atMost: 8192)),
      .required("attestationObject", .base64URL(atMost: 16384)),
      .optional("transports", .array(.text), "Handed back to clients; nothing is decided by it."),
    ])
  }

  public var id: String
  public var rawId: String
  public var type: String
  public var response: Response
  public var name: String?

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
    .optional("name", .deviceModel, "What the user calls the key."),
  ])
}

/// `POST /auth/webauthn/authentication`: `AuthenticationResponseJSON`, as `PublicKeyCredential.toJSON` gives it, and
/// what `POST /auth/mfa/verify-login` has beside its code. Members that are not here are passed over.
public struct AuthenticationRequest: WireValue {
  public struct Response: WireValue {
    public var clientDataJSON: String
    public var authenticatorData: String
    public var signature: String
    public var userHandle: String?

    public init(clientDataJSON: String, authenticatorData: String, signature: String, userHandle: String? = nil) {
      self.clientDataJSON = clientDataJSON
      self.authenticatorData = authenticatorData
      self.signature = signature
      self.userHandle = userHandle
    }

    public static let schema = JSONSchema.object([
      .required("clientDataJSON", .base64URL(atMost: 8192)),
      .required("authenticatorData", .base64URL(atMost: 4096)), .required("signature", .base64URL(atMost: 1024)),
      .optional("userHandle", .nullable(.string(maxLength: 86)), "Empty is as if absent."),
    ])
  }

  public var id: String
  public var rawId: String
  public var type: String
  public var response: Response
  public var trust_device: Bool?
  public var device_name: String?

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
    .optional("trust_device", .boolean, "Spares this device the second factor for 30 days."),
    .optional("device_name", .deviceModel),
  ])
}

/// A security key as its user sees it.
public struct SecurityKeyEntry: WireValue {
  public var id: String
  public var credentialId: String
  public var name: String
  public var algorithm: Int
  public var transports: [String]
  public var backedUp: Bool
  public var createdAt: String
  @Nullable public var lastUsedAt: String?

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
    .required("algorithm", .integer(), "COSE's number: -7 ES256, -8 EdDSA, -257 RS256."),
    .required("transports", .array(.text)),
    .required("backedUp", .boolean, "Whether it says that a copy of it is kept elsewhere."),
    .required("createdAt", .time), .required("lastUsedAt", .nullable(.time)),
  ])
}

public struct SecurityKeyList: WireValue {
  public var keys: [SecurityKeyEntry]

  public init(keys: [SecurityKeyEntry]) { self.keys = keys }

  public static let schema = JSONSchema.object([.required("keys", .array(SecurityKeyEntry.schema))])
}

/// `DELETE /auth/webauthn/keys/{id}`
public struct SecurityKeyRequest: WireValue {
  public var id: String

  public init(id: String) { self.id = id }

  public static let schema = JSONSchema.object([.required("id", .uuid)])
}

/// `POST /auth/webauthn/keys/rename`
public struct RenameKeyRequest: WireValue {
  public var id: String
  public var name: String

  public init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  public static let schema = JSONSchema.object([.required("id", .uuid), .required("name", .deviceModel)])
}

extension JSONSchema {
  /// Base64url without padding, of at most so many bytes.
  fileprivate static func base64URL(atMost bytes: Int) -> JSONSchema {
    .string(minLength: 2, maxLength: (bytes * 4 + 2) / 3, pattern: "^[A-Za-z0-9_-]+$")
  }

  fileprivate static let credentialID = base64URL(atMost: 1023)
  fileprivate static let challenge = string(minLength: 43, maxLength: 43, pattern: "^[A-Za-z0-9_-]+$")
  fileprivate static let userVerification = oneOf(["required", "preferred", "discouraged"])
  /// The one that there is.
  fileprivate static let credentialType = constant("public-key")
}
