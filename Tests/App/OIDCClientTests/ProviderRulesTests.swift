import Foundation
import OIDCClient
import TestSupport
import Testing

@Suite("The rules for a provider")
struct ProviderRulesTests {
  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  private func faults(_ provider: IdentityProvider) -> [String] { provider.faults.map(\.description) }

  private func discovered(
    id: String = "work", name: String = "Work", issuer: String = "https://login.example.com", clientID: String = "app",
    secret: String? = nil, scopes: [String] = ["openid"], redirect: String? = nil,
    authentication: ClientAuthentication? = nil, trust: ConnectionTrust = ConnectionTrust(), fallbacks: [String] = []
  ) throws -> IdentityProvider {
    IdentityProvider(
      id: id, name: name, issuer: try url(issuer), clientID: clientID, clientSecret: secret, scopes: scopes,
      redirectURI: try redirect.map { try url($0) }, authentication: authentication, trust: trust, fallbacks: fallbacks)
  }

  @Test(
    arguments: [
      "https://login.example.com", "https://login.example.com:8443/realms/x", "http://127.0.0.1:8080",
      "http://localhost:1", "http://[::1]:8080/x", "HTTPS://login.example.com",
    ])
  func `an issuer is https, or http on loopback`(issuer: String) throws {
    #expect(faults(try discovered(issuer: issuer)) == [])
  }

  @Test(
    arguments: [
      ("http://login.example.com", "must be https, or http on loopback: codes and tokens are sent there"),
      ("http://127.0.0.1.example.com", "must be https, or http on loopback: codes and tokens are sent there"),
      ("http://127.1", "must be https, or http on loopback: codes and tokens are sent there"),
      ("http://0.0.0.0", "must be https, or http on loopback: codes and tokens are sent there"),
      ("http://localhost.example.com", "must be https, or http on loopback: codes and tokens are sent there"),
      ("https://login.example.com/#x", "must not contain a fragment"),
      ("https://login.example.com/#", "must not contain a fragment"),
      ("https://login.example.com/?a=b", "must not contain a query"),
      ("https://login.example.com?", "must not contain a query"),
      ("https://ada@login.example.com", "must not contain a user or a password"),
      ("https://ada:x@login.example.com", "must not contain a user or a password"),
      ("https://login.example.com:70000", "must have a port from 1 to 65535"),
      ("https://login.example.com:0", "must have a port from 1 to 65535"),
      ("login.example.com", "must be an absolute URL, such as https://login.example.com"),
      ("/realms/x", "must be an absolute URL, such as https://login.example.com"),
      ("https:///x", "must be an absolute URL, such as https://login.example.com"),
      ("https:login", "must be an absolute URL, such as https://login.example.com"),
      ("ftp://login.example.com", "must be https, or http on loopback"),
    ])
  func `an issuer that breaks a rule has that fault`(issuer: String, reason: String) throws {
    #expect(faults(try discovered(issuer: issuer)) == ["issuer: \(reason)"])
  }

  @Test func `every fault of a URL is reported`() throws {
    #expect(faults(try discovered(issuer: "http://ada@login.example.com:0/?a#b")).count == 5)
  }

  @Test func `each endpoint is judged, and an endpoint may have a query`() throws {
    let good = try url("https://login.example.com/x?tenant=1")
    let bad = try url("http://login.example.com/x")
    func provider(_ url: URL) -> IdentityProvider {
      IdentityProvider(
        id: "work", name: "Work", tokenEndpoint: url, authorizationEndpoint: url, clientID: "app", scopes: [],
        type: .oauth2, issuer: "https://login.example.com",
        endpoints: FurtherEndpoints(
          jwksURI: url, redirectURI: url, userinfo: url, revocation: url, endSession: url, deviceAuthorization: url))
    }
    #expect(provider(good).faults == [])
    #expect(
      provider(bad).faults.map(\.field) == [
        "token_endpoint", "authorization_endpoint", "jwks_uri", "userinfo_endpoint", "revocation_endpoint",
        "end_session_endpoint", "device_authorization_endpoint", "redirect_uri",
      ])
  }

  @Test(
    arguments: [
      ("http://127.0.0.1:8912/callback", true), ("com.example.app:/callback", true),
      ("https://app.example.com/cb", true),
      ("http://app.example.com/cb", false), ("app:/callback", false), ("javascript:alert(1)", false),
      ("http://127.0.0.1:8912/callback#x", false), ("com.example.app:/callback#x", false),
    ])
  func `a redirect goes to this machine, to an app or to an https page`(redirect: String, isAllowed: Bool) throws {
    #expect(try discovered(redirect: redirect).faults.map(\.field) == (isAllowed ? [] : ["redirect_uri"]))
  }

  @Test(
    arguments: [
      ("a", true), ("A-1_b.c", true), (String(repeating: "a", count: 64), true), ("", false), ("a b", false),
      ("ä", false), ("a/b", false), ("..", false), ("-a", false), (String(repeating: "a", count: 65), false),
    ])
  func `an identifier can be an argument and a part of a file name`(id: String, isAllowed: Bool) throws {
    #expect(try discovered(id: id).faults.map(\.field) == (isAllowed ? [] : ["id"]))
  }

  @Test(arguments: [("Ada's Büro", true), ("", false), ("a\nb", false), (String(repeating: "a", count: 65), false)])
  func `a name is one line`(name: String, isAllowed: Bool) throws {
    #expect(try discovered(name: name).faults.map(\.field) == (isAllowed ? [] : ["name"]))
  }

  @Test func `the client needs an identifier and the secret of its authentication`() throws {
    #expect(faults(try discovered(clientID: "")) == ["client_id: must not be empty"])
    #expect(faults(try discovered(clientID: "a\n")) == ["client_id: must be printable ASCII"])
    #expect(faults(try discovered(secret: "s3cret")) == [])
    #expect(faults(try discovered(secret: "s3cret", authentication: .post)) == [])
    #expect(try discovered(secret: "").faults.map(\.field) == ["client_secret"])
    #expect(try discovered(secret: "s3cret\n").faults.map(\.field) == ["client_secret"])
    #expect(faults(try discovered(authentication: .basic)) == ["authentication: basic needs a client secret"])
    #expect(faults(try discovered(authentication: .post)) == ["authentication: post needs a client secret"])
    let unused = try discovered(secret: "s3cret", authentication: ClientAuthentication.none)
    #expect(unused.faults.map(\.field) == ["client_secret"])
    #expect(!faults(unused).joined().contains("s3cret"))
  }

  @Test(
    arguments: [
      (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], nil as String?),
      (["genrsa", "2048"], nil), (["genrsa", "-traditional", "2048"], nil),
      (["genrsa", "1024"], "must be a P-256 key, or an RSA key of at least 2,048 bits"),
      (
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        "must be a P-256 key, or an RSA key of at least 2,048 bits"
      ),
      (["genrsa", "-aes256", "-passout", "pass:word", "2048"], "must not be encrypted"),
      (["version"], "is not a private key in PEM"),
    ])
  func `the key of private_key_jwt is P-256 or RSA`(command: [String], reason: String?) async throws {
    let pem = try await ChildProcess.run(try Places.tool("openssl"), command).output.joined(separator: "\n")
    let provider = try discovered(authentication: .privateKeyJWT(pem: pem, keyID: "k1"))
    #expect(faults(provider) == (reason.map { ["private_key: \($0)"] } ?? []))
  }

  @Test func `a key identifier has characters, and no secret is next to a key`() throws {
    let provider = try discovered(secret: "s3cret", authentication: .privateKeyJWT(pem: "", keyID: ""))
    #expect(provider.faults.map(\.field) == ["client_secret", "private_key", "private_key_id"])
  }

  @Test func `scopes contain openid with OpenID Connect, and no separators`() throws {
    #expect(faults(try discovered(scopes: ["email"])) == ["scopes: must contain openid with OpenID Connect"])
    #expect(
      try discovered(scopes: ["openid", "a b", "", "\"", "x"]).faults.map(\.field)
        == ["scopes[1]", "scopes[2]", "scopes[3]"])
    let oauth = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: try url("https://a.example"), clientID: "app", scopes: [], type: .oauth2)
    #expect(oauth.faults == [])
  }

  @Test func `OpenID Connect needs an issuer, and the issuer is a URL as it stands`() throws {
    func provider(_ issuer: String?) throws -> IdentityProvider {
      IdentityProvider(
        id: "work", name: "Work", tokenEndpoint: try url("https://a.example"), clientID: "app", scopes: ["openid"],
        type: .openIDConnect, issuer: issuer)
    }
    #expect(try provider("https://a.example").faults == [])
    #expect(faults(try provider(nil)) == ["issuer: is required with OpenID Connect"])
    #expect(try provider("https://a.example/ä b").faults.map(\.field) == ["issuer"])
    #expect(try provider("").faults.map(\.field) == ["issuer"])
  }

  @Test func `pins are hashes, and a fallback is another provider`() throws {
    let pin = [UInt8](repeating: 1, count: 32)
    #expect(try discovered(trust: ConnectionTrust(authorityFile: "/a", pins: [pin])).faults == [])
    let short = ConnectionTrust(authorityFile: "", pins: [Array(pin.dropLast())])
    #expect(try discovered(trust: short).faults.map(\.field) == ["pins", "ca_file"])
    #expect(
      faults(try discovered(fallbacks: ["backup", "work", "backup"])) == [
        "fallbacks[1]: must not be the provider itself", "fallbacks[2]: is listed twice",
      ])
  }
}
