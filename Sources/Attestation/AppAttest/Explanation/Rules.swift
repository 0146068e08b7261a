extension AttestationStep {
  /// The rule as a sentence.
  public var rule: String {
    switch self {
    case .format: "the object is a CBOR map of fmt, attStmt (x5c, receipt) and authData, and nothing else"
    case .certificateChain: "leaf and intermediate lead to a trusted root, and all are valid at the time"
    case .nonce: "the leaf's nonce is the SHA-256 of authenticator data and client data hash"
    case .keyID: "the key identifier is the SHA-256 of the leaf's key"
    case .rpID: "the RP ID hash is the SHA-256 of the app ID"
    case .counter: "the counter is 0"
    case .environment: "the aaguid stands for an environment in which the app may be"
    case .credentialID: "the credential identifier is the key identifier"
    case .credentialKey: "the COSE key in the authenticator data is the leaf's key"
    case .extensions: "behind the COSE key there is nothing, or one map of extensions"
    case .receipt: "the receipt is genuine, and for this app, key and attestation"
    }
  }
}

extension AssertionStep {
  /// The rule as a sentence.
  public var rule: String {
    switch self {
    case .format: "the assertion is a CBOR map of signature and authenticatorData, and nothing else"
    case .extensions: "behind the counter there is nothing, or one map of extensions"
    case .signature: "the key signed the SHA-256 of authenticator data and client data hash"
    case .rpID: "the RP ID hash is the SHA-256 of the app ID"
    case .counter: "the counter is greater than the last one"
    }
  }
}

extension ReceiptStep {
  /// The rule as a sentence.
  public var rule: String {
    switch self {
    case .format: "the receipt is signed data with a set of fields in it, and nothing else"
    case .certificateChain: "the signer's certificate is one for receipts, leads to a trusted root, and is valid"
    case .signature: "the signer signed the fields"
    case .appID: "the receipt is for the app"
    case .publicKey: "the receipt is for the key"
    case .clientDataHash: "the receipt, if it is the first one, is for the client data hash"
    case .environment: "the receipt is from the environment of the key"
    case .expiry: "the receipt has not expired"
    }
  }
}
