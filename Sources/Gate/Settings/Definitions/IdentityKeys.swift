internal import ConfigurationEngine

/// The settings of the section `identity`.
extension Keys {
  static let identityKeys = [KeyDefinition](
    issuer, audience, identityKeyLife, identityKeyOverlap, strippedHeaders, keptHeaders)

  static let issuer = Key(
    "identity.issuer", .nameOrURL(form: "a name, or the URL of the gate"), default: "sallyport",
    "`iss` of the identity assertions for upstreams.")
  static let audience = Key(
    "identity.audience", .nameOrURL(form: "a name"), default: "sallyport-upstream",
    "`aud` of the identity assertions for upstreams, unless the route sets its own.")
  static let identityKeyLife = Key(
    "identity.key_life", .durationOrOff(600_000...31_536_000_000), default: "90d",
    "How long an identity signing key is used before it is replaced.")
  static let identityKeyOverlap = Key(
    "identity.key_overlap", .duration(300_000...604_800_000), default: "1h",
    "How long an identity signing key is published before its first use, and after its last.")
  static let strippedHeaders = Key(
    "identity.strip_headers[]", .fieldName, example: "X-Internal-User",
    "Additional header fields to remove from requests to the upstream.")
  static let keptHeaders = Key(
    "identity.keep_headers[]", .plainFieldName, example: "X-App-Version",
    "Header fields of clients that the gate would remove because other gateways set fields of such names. The upstream "
      + "must not trust them.")
}
