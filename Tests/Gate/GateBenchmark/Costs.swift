import AndroidKeyAttestation
import AppAttest
import ArgumentParser
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import GateService
import Logging
import Observability
import SQLiteStore
import SimulatedDevice
import Transport

/// Sends each public endpoint of the gate ordinary requests, and the most expensive ones that the engine lets through.
struct Costs: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Sends each public endpoint ordinary requests and the most expensive ones.",
    discussion: """
      Prints a line for each kind: endpoint, tab, input. Before and after the requests of each kind, which are made \
      before, it calls markCosts. So every second profile of callgrind is that of a kind:

        valgrind --tool=callgrind --dump-before='*markCosts*' gate-bench costs --count 5

      `scripts/bench --check` does that and compares.
      """)

  @Option(help: "The number of requests of each kind.")
  var count = 5

  func validate() throws {
    guard count > 0 else { throw ValidationError("--count must be positive") }
  }

  func run() throws {
    try awaited {
      let site = try await CostSite()
      // What a gate does once only: parsed roots, loaded keys, prepared statements.
      for kind in try site.kinds() where kind.input == CostSite.ordinary {
        try await site.send([kind.make()], of: kind)
      }
      for kind in try site.kinds() {
        var requests: [Request] = []
        for _ in 0..<count { requests.append(try await kind.make()) }
        print("\(kind.endpoint)\t\(kind.input)")
        markCosts()
        try await site.send(requests, of: kind)
        markCosts()
      }
    }
  }
}

/// A place at which a profiler can separate what came before from what follows.
@inline(never)
public func markCosts() { fflush(nil) }

/// Requests of one kind to one endpoint.
struct CostKind {
  let endpoint: String
  let input: String
  let make: () async throws -> Request
}

/// A gate for both platforms with all endpoints, and makers of requests to it.
struct CostSite: Sendable {
  static let ordinary = "ordinary"
  private static let audience = "https://api.example"
  /// What the engine accepts: a body of 64 KiB, and a head of 16 KiB with some room for the other fields.
  private static let mostBody = 65_536
  private static let mostValue = 15_000

  private let folder: TemporaryFolder
  private let authority: TestAuthority
  private let factory: AndroidMint
  private let challenges = Challenges(ring: .random())
  private let responder: GateResponder
  private let peer = Peer(address: .ipv4([127, 0, 0, 1], port: 50_000))
  private let begin = Timestamp.now()

  init() async throws {
    folder = try TemporaryFolder()
    let store = SQLiteStore(path: folder.file("state.db"))
    authority = try TestAuthority(appID: GateBench.appID, at: begin)
    factory = try AndroidMint.factory()
    guard let appID = AppID(GateBench.appID),
      let apps = AllowedApps(
        [AppPolicy(appID: appID, environments: [.development])],
        android: [AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer])]),
      let route = Route(path: "/", upstream: .webSocket(host: "127.0.0.1", port: 8080)),
      let routes = RouteTable([route])
    else { throw FixtureError.unexpected }
    let keys = IdentityKeys(storage: store)
    let gate = Gate(rules: [try AssertionRule(apps: apps, challenges: challenges, registry: store)])
    let tokens = TokenEndpoint(
      gate: gate,
      issuer: TokenIssuer(issuer: "gate", audiences: [Self.audience], life: .seconds(300), keys: keys),
      attester: ClientAttester(issuer: "gate", clients: [], keys: keys), challenges: challenges)
    let sink = LineSink(descriptor: FileHandle(forWritingAtPath: "/dev/null")?.fileDescriptor ?? 2)
    responder = GateResponder(
      gate: gate,
      registrar: Registrar(
        apps: apps,
        verifier: AttestationVerifier(
          apps: apps.environments, attestationRoots: [authority.attestationRoot.certificate],
          receiptRoots: [authority.receiptRoot.certificate]),
        android: AndroidVerification(roots: [try IssuerKey(spki: factory.rootKey)]), challenges: challenges,
        registry: store),
      challenges: challenges, identities: IdentityIssuer(issuer: "gate", audience: "upstream", keys: keys),
      tokens: tokens, routes: routes, logger: Logger(label: "gate-bench") { JSONLineHandler(label: $0, sink: sink) })
  }

  func send(_ requests: [Request], of kind: CostKind) async throws {
    for request in requests {
      let disposition: Disposition
      if let atOnce = responder.respondAtOnce(to: request, from: peer) {
        disposition = atOnce
      } else {
        disposition = await responder.respond(to: request, from: peer)
      }
      guard kind.input == Self.ordinary else { continue }
      // A refused request would be a wrong measure of ordinary ones.
      switch disposition {
      case .relay: continue
      case .respond(let response) where response.status < 300: continue
      default: throw FixtureError.unexpected
      }
    }
  }

  /// All kinds, the ordinary one of an endpoint before the others.
  func kinds() throws -> [CostKind] {
    var kinds: [CostKind] = []
    func add(_ endpoint: String, _ input: String, _ make: @escaping () async throws -> Request) {
      kinds.append(CostKind(endpoint: endpoint, input: input, make: make))
    }
    let endpoints: [(name: String, request: () async throws -> Request)] = [
      ("GET /attest/challenge", { request("GET", "/attest/challenge") }),
      ("GET jwks.json", { request("GET", "/.well-known/sallyport/jwks.json") }),
      ("POST /attest/register", { try registration() }),
      ("POST /attest/register, Android", { try registration(below: factory) }),
      ("POST /attest/token", { try await token() }),
      ("GET /attest/verify", { request("GET", "/attest/verify", try await proof()) }),
      ("upgrade", { upgrade(try await proof()) }),
    ]
    for endpoint in endpoints {
      add(endpoint.name, Self.ordinary, endpoint.request)
      for name in Self.fields {
        add(endpoint.name, "marks in \(name)") {
          Self.replacing(name, by: Self.marks(Self.mostValue), in: try await endpoint.request())
        }
      }
    }
    for (input, body) in Self.bodies() {
      add("POST /attest/register", input) {
        request("POST", "/attest/register", body: Array(body.prefix(Self.mostBody)))
      }
    }
    for (input, change) in Self.chains {
      add("POST /attest/register, Android", input) {
        request("POST", "/attest/register", body: Array(try chain(change).prefix(Self.mostBody)))
      }
    }
    for (input, form) in Self.forms {
      add("POST /attest/token", input) { try await token(form: form) }
    }
    for (input, change) in Self.proofs {
      add("POST /attest/token", input) { try await token(changing: change) }
    }
    return kinds
  }

  // MARK: Ordinary requests

  private func nonce() throws -> Nonce {
    guard let challenge = challenges.issue(at: .now()) else { throw FixtureError.unexpected }
    return challenge.nonce
  }

  private func request(
    _ method: String, _ path: String, _ fields: [(String, String)] = [], body: [UInt8] = []
  ) -> Request {
    var headers = HeaderFields([.init(name: "Host", value: "gate.example")])
    for (name, value) in fields { headers.append(name, value) }
    return Request(
      id: String(repeating: "0", count: 32), method: method, target: path, path: path, headers: headers, body: body)
  }

  private func upgrade(_ fields: [(String, String)]) -> Request {
    let (plain, key) = (request("GET", "/", fields), "dGhlIHNhbXBsZSBub25jZQ==")
    return Request(
      id: plain.id, method: "GET", target: "/", path: "/", headers: plain.headers, upgrade: UpgradeIntent(key: key))
  }

  private func device() throws -> MintedDevice {
    try MintedDevice(app: SimulatedApp(appID: GateBench.appID), authority: authority)
  }

  private func registration(of device: MintedDevice? = nil) throws -> Request {
    let claim = try (device ?? self.device()).registration(over: try nonce(), at: .now())
    let members = ["keyId": claim.keyID, "attestation": claim.attestation, "nonce": claim.nonce]
    return request("POST", "/attest/register", body: Array(try JSONEncoder().encode(members)))
  }

  private func registration(below factory: AndroidMint) throws -> Request {
    let nonce = try nonce()
    var description = factory.description
    description.challenge = nonce.bytes
    let mint = AndroidMint(
      key: try ECPrivateKey(.p256), issuers: Array(factory.certificates.dropFirst()), description: description)
    return request("POST", "/attest/register", body: try Self.body(of: mint.chain(), nonce: nonce.text))
  }

  private static func body(of chain: [[UInt8]], nonce: String) throws -> [UInt8] {
    let list = chain.map { "\"\(Base64.encode($0))\"" }.joined(separator: ",")
    return Array(#"{"platform":"android","nonce":"\#(nonce)","chain":[\#(list)]}"#.utf8)
  }

  /// The fields of an assertion of a device that was registered before.
  private func proof(over nonce: Nonce? = nil) async throws -> [(String, String)] {
    let device = try device()
    _ = await responder.respond(to: try registration(of: device), from: peer)
    let headers = try device.headers(over: try nonce ?? self.nonce(), count: 1)
    return headers.map { ($0.key.rawValue, $0.value) }
  }

  private func token(
    form: String = "audience=https%3A%2F%2Fapi.example",
    changing change: (inout (header: String, claims: String)) -> Void = { _ in }
  ) async throws -> Request {
    let (nonce, key) = (try nonce(), try P256PrivateKey())
    let jwk = JSONWebKey(key.publicKey)
    var parts = (
      header: #"{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"\#(jwk.x)","y":"\#(jwk.y)"}}"#,
      claims: """
      {"jti":"a","htm":"POST","htu":"https://gate.example/attest/token","iat":\(Timestamp.now().seconds),\
      "nonce":"\(nonce.text)"}
      """
    )
    change(&parts)
    let signed = [parts.header, parts.claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    let dpop = signed + "." + Base64URL.encode(try key.es256Signature(for: Array(signed.utf8)))
    let type = [("Content-Type", "application/x-www-form-urlencoded"), ("DPoP", dpop)]
    return request("POST", "/attest/token", type + (try await proof(over: nonce)), body: Array(form.utf8))
  }

  // MARK: Expensive parts

  private static let fields = [
    "Accept", "Origin", "traceparent", "Content-Type", "DPoP", "X-App-Assert-KeyId", "X-App-Assert-Data",
    "X-App-Assert-Nonce",
  ]

  /// Combining marks of two classes in the wrong order, which normalizing has to sort: at most `count` bytes.
  private static func marks(_ count: Int) -> String {
    "a" + String(repeating: "\u{301}", count: (count - 1) / 4) + String(repeating: "\u{323}", count: (count - 1) / 4)
  }

  private static func replacing(_ name: String, by value: String, in request: Request) -> Request {
    var headers = request.headers.filter { !$0.isNamed(name) }
    headers.append(name, value)
    return Request(
      id: request.id, method: request.method, target: request.target, path: request.path, headers: headers,
      body: request.body, upgrade: request.upgrade)
  }

  private static func bodies() -> [(input: String, body: [UInt8])] {
    func list(_ count: Int, _ element: (Int) -> String) -> String {
      (0..<count).map(element).joined(separator: ",")
    }
    let texts = [
      ("a name of marks", "{\"\(marks(54_000))\":0,\(list(900) { "\"\($0)\":0" })}"),
      ("names of marks", "{\(list(250) { "\"\($0)\(marks(240))\":0" })}"),
      ("9,000 names", "{\(list(9000) { "\"\($0)\":0" })}"),
      ("a platform of marks", "{\"platform\":\"\(marks(65_000))\"}"),
      ("a key id of marks", "{\"keyId\":\"\(marks(64_000))\",\"attestation\":\"AAAA\",\"nonce\":\"\"}"),
      ("an attestation of marks", "{\"keyId\":\"\",\"attestation\":\"\(marks(64_000))\",\"nonce\":\"\"}"),
      ("escapes", "{\"nonce\":\"\(String(repeating: #"\u0301"#, count: 10_900))\"}"),
      ("32,000 numbers", "{\"chain\":[\(list(32_000) { _ in "0" })]}"),
      ("a number of 65,000 digits", "{\"nonce\":\(String(repeating: "7", count: 65_000))}"),
      ("blanks", String(repeating: " ", count: 65_000) + "{}"),
      ("16,000 texts", "{\"platform\":\"android\",\"nonce\":\"\",\"chain\":[\(list(16_000) { _ in "\"\"" })]}"),
    ]
    let attestation = Base64.encode([UInt8](repeating: 0x80, count: 48_000))
    let keyID = Base64.encode([UInt8](repeating: 0, count: 32))
    let nonce = String(repeating: "0", count: 64)
    return texts.map { ($0.0, Array($0.1.utf8)) } + [
      (
        "an attestation of 48,000 bytes",
        Array(#"{"keyId":"\#(keyID)","attestation":"\#(attestation)","nonce":"\#(nonce)"}"#.utf8)
      )
    ]
  }

  private func chain(_ change: (inout AndroidMint) throws -> Void) throws -> [UInt8] {
    let nonce = try nonce()
    var mint = factory
    mint.description.challenge = nonce.bytes
    try change(&mint)
    return try Self.body(of: mint.chain(), nonce: nonce.text)
  }

  private static let chains: [(String, @Sendable (inout AndroidMint) throws -> Void)] = [
    (
      "a package of marks",
      {
        $0.description.software[709] = MintedKeyDescription.application(
          packages: [marks(40_000)], signers: [AndroidMint.signer])
      }
    ),
    (
      "4,000 packages",
      {
        $0.description.software[709] = MintedKeyDescription.application(
          packages: (0..<4000).map { "a.\($0)" }, signers: [AndroidMint.signer])
      }
    ),
    (
      "an issuer's name of marks",
      {
        let name = marks(14_000)
        $0.certificates[2].subject = MintedCertificate.name([10: name, 3: name, 5: name])
      }
    ),
    (
      "ten certificates with P-384",
      {
        for _ in 0..<6 {
          $0.certificates.insert(
            try AndroidMint.certificate([5: "0"], .p384, MintedCertificate.authority(), days: 30), at: 1)
        }
      }
    ),
    (
      "a certificate of 40,000 bytes",
      {
        $0.certificates[1].extensions.append(
          MintedCertificate.encodedExtension("1.2.3", [UInt8](repeating: 0, count: 40_000)))
      }
    ),
  ]

  private static let forms = [
    ("a form of one name", marks(3800).utf8.map { "%" + Hex.encode([$0]) }.joined().prefix(4090) + "=1"),
    ("a name of marks, not escaped", marks(4000) + "=1"),
    ("2,000 names", (0..<800).map { "\($0)=" }.joined(separator: "&")),
    ("an audience of marks", "audience=" + marks(4000)),
    ("an audience of escapes", "audience=" + String(repeating: "%CC%81", count: 680)),
  ].map { ($0.0, String($0.1)) }

  private static let proofs: [(String, @Sendable (inout (header: String, claims: String)) -> Void)] = [
    ("a proof's type of marks", { $0.header.replace("dpop+jwt", with: marks(2500)) }),
    ("a proof's header with a name of marks", { $0.header.replace("{\"typ\"", with: "{\"\(marks(2500))\":0,\"typ\"") }),
    ("a proof's method of marks", { $0.claims.replace("POST", with: marks(2500)) }),
    ("a proof's nonce of marks", { $0.claims.replace("\"nonce\":\"", with: "\"nonce\":\"\(marks(2500))") }),
    (
      "a proof's URI of dots",
      {
        $0.claims.replace("/attest/token", with: String(repeating: "/.", count: 1000) + "/attest/token")
      }
    ),
  ]
}
