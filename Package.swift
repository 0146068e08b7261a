// swift-tools-version: 6.2
import PackageDescription

// Environment variables, not package traits, leave parts out: a trait can drop a dependency of a target, and cannot
// drop the target itself, so that every file of the backend and of its tests would need an `#if`.
func isSet(_ name: String) -> Bool { Context.environment["SALLYPORT_" + name] == "1" }

/// Continuous integration sets this: a warning fails the build. Users may have a newer compiler, which warns of more.
let isStrict = isSet("STRICT")
/// `scripts/fuzz` sets this, and so does `scripts/test --sanitize core` for its tests under the address sanitizer: one
/// build serves both. Only the project's own code counts what it covers: counters elsewhere would take longer to build,
/// and lead libFuzzer to places that are not tested.
let fuzzing = isSet("FUZZING")
/// What CI builds under a sanitizer. `scripts/test --sanitize core` and `scripts/fuzz --gate` set this.
let coreOnly = isSet("CORE_ONLY")
/// Whether to leave out the MFA backend, its server framework and NIO.
let gateOnly = isSet("GATE_ONLY")
/// The commit for `--version`, with `+` if files differ from it. The scripts that build for other machines set it.
/// `Context.gitInformation` would be wrong: the package manager keeps the result of this manifest until the manifest or
/// the environment changes, which a new commit does not do.
let commit = (Context.environment["SALLYPORT_COMMIT"] ?? "").filter { $0.isLetter || $0.isNumber || $0 == "+" }

// MARK: Packages
/// Packages of github.com: the least version, and the products that targets use.
typealias Packages = KeyValuePairs<String, (from: Version, products: [String])>

let always: Packages = [
  "apple/swift-argument-parser": ("1.8.2", ["ArgumentParser"]),
  "apple/swift-log": ("1.16.2", ["Logging"]),
  "groue/GRDB.swift": ("7.10.0", ["GRDB", "GRDBSQLite"]),
  "jpsim/Yams": ("6.2.2", ["Yams"]),
]
/// Not with `SALLYPORT_GATE_ONLY`.
let forBackend: Packages = [
  "apple/swift-crypto": ("4.5.2", ["Crypto", "CryptoExtras"]),
  "apple/swift-protobuf": ("1.39.0", ["SwiftProtobuf"]),
  "vapor/jwt-kit": ("5.7.1", ["JWTKit"]),
]
/// Nor with `SALLYPORT_FUZZING`.
let forServers: Packages = [
  "apple/swift-http-types": ("1.8.0", ["HTTPTypes"]),
  "apple/swift-metrics": ("2.13.0", ["Metrics"]),
  "apple/swift-nio": ("2.101.2", ["NIOCore", "NIOHTTP1", "NIOPosix", "NIOTLS", "NIOWebSocket"]),
  "apple/swift-nio-extras": ("1.35.2", ["NIOExtras", "NIOHTTPTypes", "NIOHTTPTypesHTTP1"]),
  "apple/swift-nio-http2": ("1.46.0", ["NIOHPACK", "NIOHTTP2"]),
  "apple/swift-nio-ssl": ("2.37.6", ["NIOSSL"]),
  "hummingbird-project/hummingbird": ("2.28.1", ["Hummingbird", "HummingbirdCore"]),
  "swift-server/async-http-client": ("1.37.0", ["AsyncHTTPClient"]),
  "swift-server/swift-service-lifecycle": ("2.13.0", ["ServiceLifecycle"]),
]

/// A target of this name, or the product of a package.
func dependency(_ name: String) -> Target.Dependency {
  for (package, uses) in Array(always) + Array(forBackend) + Array(forServers) where uses.products.contains(name) {
    return .product(name: name, package: String(package.split(separator: "/")[1]))
  }
  return .byName(name: name)
}

func dependencies(_ packages: Packages) -> [Package.Dependency] {
  packages.map { .package(url: "https://github.com/\($0)", from: $1.from) }
}

/// Library products of one target each.
func libraries(_ names: [String]) -> [Product] { names.map { .library(name: $0, targets: [$0]) } }

let package = Package(
  name: "sallyport", platforms: [.macOS(.v14), .iOS(.v16)],
  // `AttestClient`, `ByteCoding`, `MFAClient`, `MFAViewModels`, `MFAWire`, `OIDCClient` and `Wire`
  // are for Apple's platforms, too; the others need OpenSSL and Linux.
  products: libraries([
    "AndroidKeyAttestation", "AppAttest", "AttestClient", "ByteCoding", "CBOR", "Cryptography", "MFAClient",
    "MFAViewModels", "MFAWire", "SimulatedDevice", "SimulatedPhone", "Wire",
  ]),
  dependencies: dependencies(always), cxxLanguageStandard: .cxx17)
if !gateOnly { package.dependencies += dependencies(forBackend) }
if !gateOnly && !fuzzing {
  package.dependencies += dependencies(forServers)
  package.products += libraries(["AuthenticatorVault", "OIDCClient", "OneTimePasswords", "QRCodes", "VaultFormats"])
}

// MARK: Targets
let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault"),
  ] + (isStrict ? [.treatAllWarnings(as: .error)] : [])
/// Of several options `-sanitize` the compiler heeds the last one, which is this.
let ownSettings = settings + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])
/// What continuous integration tests is optimized; the tests themselves are not, which halves the time to compile them.
let testSettings = settings + (isStrict ? [.unsafeFlags(["-Onone"])] : [])
/// The targets through which each admission passes. Their asynchronous functions go on where their caller runs, which is
/// an event loop: otherwise each call would ask Swift's runtime to which executor it belongs, some thirty times in all.
let ofAdmission: Set = ["Transport", "TransportEngine", "AttestGate", "GateService", "SQLiteStore", "PostgresStore"]
/// Programs, and their folders.
let programs = [
  "attest": "attest", "authenticator": "authenticator", "bearer": "bearer", "gate-bench": "GateBenchmark",
  "guide-client": "GuideClient", "keyring-probe": "KeyringProbe", "mfa-backend": "mfa-backend",
  "mfa-bench": "MFABenchmark", "sallyport": "sallyport",
]
/// What libraries for apps import on Linux alone: Apple's platforms have it.
let onLinux = ["AttestClient": "Cryptography", "AuthenticatorVault": "ProcessSignals", "OIDCClient": "ProcessSignals"]
/// Files left out. `scripts/release` leaves out `URLSession`, and with it libcurl: programs have other clients.
let excluded = [
  "AttestClient": isSet("WITHOUT_URLSESSION") ? "URLSessionTransport.swift" : nil, "VaultFormats": "OTPMigration.proto",
]

/// The rooms of the house. Each target has its folder in one of them, below `Sources` or `Tests`. `RoomTests` knows from
/// which other rooms a room may import. A table has targets, and what they depend on: a target may import what it names
/// there, and what that needs in turn.
enum Room: String {
  case common = "Common", daemon = "Daemon", attestation = "Attestation", gate = "Gate"
  case backend = "Backend", app = "App", simulation = "Simulation", tools = "Tools"

  func sources(_ table: KeyValuePairs<String, [String]>) -> [Target] { table.map { target("Sources", $0, $1) } }
  /// Tests, what several of them share, and programs that they run.
  func tests(_ table: KeyValuePairs<String, [String]>) -> [Target] { table.map { target("Tests", $0, $1) } }

  private func target(_ folder: String, _ name: String, _ names: [String]) -> Target {
    let path = "\(folder)/\(rawValue)/\(programs[name] ?? name)"
    var needed = names.map(dependency)
    if let name = onLinux[name] { needed.append(.target(name: name, condition: .when(platforms: [.linux]))) }
    if name.hasSuffix("Tests") {
      return .testTarget(name: name, dependencies: needed, path: path, swiftSettings: testSettings)
    }
    if programs[name] != nil {
      return .executableTarget(name: name, dependencies: needed, path: path, swiftSettings: settings)
    }
    return .target(
      name: name, dependencies: needed, path: path, exclude: [excluded[name] ?? nil].compactMap(\.self),
      swiftSettings: ownSettings
        + (ofAdmission.contains(name) ? [.enableUpcomingFeature("NonisolatedNonsendingByDefault")] : []))
  }

  /// Sources in C.
  func c(_ name: String, _ names: [String] = [], flags: [CSetting] = [], libraries: [String] = []) -> Target {
    .target(
      name: name, dependencies: names.map(dependency), path: "Sources/\(rawValue)/\(name)", cSettings: flags,
      linkerSettings: libraries.map { .linkedLibrary($0) })
  }

  /// A C library of the system; `debian` has the packages with its headers.
  func library(_ name: String, _ pkgConfig: String, debian: String...) -> Target {
    .systemLibrary(name: name, path: "Sources/\(rawValue)/\(name)", pkgConfig: pkgConfig, providers: [.apt(debian)])
  }
}

// MARK: Common: values and borders without a process around them, for all rooms
package.targets += [
  Room.common.library("CLibCBOR", "libcbor", debian: "libcbor-dev"),  // The streaming decoder of CBOR.
  Room.common.c("CLinux"),  // Calls of Linux that Swift's Glibc module leaves out, and the signal handler.
  Room.common.library("COpenSSL", "openssl", debian: "libssl-dev"),  // TLS, certificates, signatures.
  Room.common.library("CQREncode", "libqrencode", debian: "libqrencode-dev"),  // The encoder of QR codes.
]
package.targets += Room.common.sources([
  "ByteCoding": [],  // Bytes and texts of strangers: base64, hex, JSON, times, HTML, which rule held for what was read.
  "CBOR": ["CLibCBOR"],  // CBOR and deterministic encoding (RFC 8949), behind strict limits.
  // Certificates, ASN.1, CMS, signatures, sealed boxes, an authority for clients, with OpenSSL.
  "Cryptography": ["ByteCoding", "COpenSSL", "Locking"],
  "Locking": [],  // Values behind locks, threads of their own.
  "MFAWire": [],  // What apps and the MFA backend say to each other.
  "OneTimePasswords": ["ByteCoding", "Crypto"],  // HOTP and TOTP (RFC 4226, RFC 6238), and otpauth links.
  "ProcessSignals": ["CLinux", "Locking"],  // Signals, and files that a signal must not leave behind.
  "QREncoding": ["CQREncode"],  // QR codes of texts.
  // HTTP without a client: request, response, proxies of the environment; what gates say to their clients; and, without
  // cryptography, the rules of ID tokens and of documents of OpenID providers.
  "Wire": ["ByteCoding", "Locking"],
])
package.targets += Room.common.tests([
  "TestSupport": ["Locking"],
  "ByteCodingTests": ["ByteCoding"],
  "CBORTests": ["ByteCoding", "CBOR", "TestSupport"],
  "CertificateIssuingTests": ["Cryptography", "TestSupport"],
  "ClientAuthorityTests": ["Cryptography", "TestSupport"],
  "CryptographyTests": ["Cryptography", "TestSupport"],
  "ForwardProxiesTests": ["TestSupport", "Wire"],
  "LockingTests": ["Locking"],
  "OneTimePasswordsTests": ["OneTimePasswords", "TestSupport"],
  "ProcessSignalsTests": ["ProcessSignals", "TestSupport"],
])

// MARK: Daemon: what every program that is operated needs, written once
package.targets += [
  Room.daemon.library("CPostgres", "libpq", debian: "libpq-dev"),  // The client of PostgreSQL.
  // Before `main` and between fork and exec, where no Swift may run: early signals, grandchildren.
  Room.daemon.c("CServiceProcess"),
  // The commit of the sources. Only its file is compiled again for each commit.
  Room.daemon.c("CSourceCommit", flags: [.define("SALLYPORT_COMMIT", to: "\"\(commit)\"")]),
]
package.targets += Room.daemon.sources([
  // How every program speaks: failures, console, help, standard places, version, the browser.
  "Commands": ["ByteCoding", "CSourceCommit", "ProcessSignals", "ArgumentParser"],
  // Settings from flags, environment, file and defaults, with every fault at its place, and documents from one table.
  "ConfigurationEngine": ["Commands", "Yams"],
  "Databases": ["CLinux", "CPostgres", "Locking"],  // Sessions of PostgreSQL, group commit, files of SQLite.
  // HTTP of servers and tools, with faults in words.
  "HTTPClientTransport": [
    "Wire", "AsyncHTTPClient", "Crypto", "NIOCore", "NIOHPACK", "NIOHTTP1", "NIOHTTP2", "NIOPosix", "NIOSSL", "NIOTLS",
  ],
  // What a program tells: log lines, metrics, traces, and signed messages from a queue on disk.
  "Observability": ["Cryptography", "Logging"],
  "ProcessFrame": ["CServiceProcess", "Locking"],  // systemd, watchdog and graceful upgrades.
])
package.targets += Room.daemon.tests([
  "PostgresServers": ["TestSupport"],
  "GracefulUpgradeTests": ["ProcessFrame", "TestSupport"],
  "GroupCommitTests": ["Databases"],
  "HTTPClientTransportTests": ["Cryptography", "HTTPClientTransport", "OIDCClient", "TestSupport"],
  "JSONLogTests": ["Observability"],
  "PrometheusTests": ["Observability"],
  "StandardPlacesTests": ["Commands"],
  "SystemdTests": ["ProcessFrame", "TestSupport"],
  "TelemetryTests": ["Observability"],
  "WebhooksTests": ["ConfigurationEngine", "Observability", "TestSupport"],
])

// MARK: Attestation: pure verification of devices: no clock, no input or output, nothing asynchronous
package.targets += Room.attestation.sources([
  "AndroidKeyAttestation": ["Cryptography"],  // Android's key attestation: chains and key descriptions.
  "AppAttest": ["CBOR", "Cryptography"],  // Apple's App Attest: attestations, assertions, receipts.
  "Inspection": ["AndroidKeyAttestation", "AppAttest"],  // What a device sent, as a tree of fields with offsets.
])
package.targets += Room.attestation.tests([
  "AndroidKeyAttestationTests": ["SimulatedDevice", "TestSupport"],
  "AppAttestMintedTests": ["SimulatedDevice"],
  "AppAttestTests": ["SimulatedDevice", "TestSupport"],
  "InspectionTests": ["Inspection", "SimulatedDevice", "TestSupport"],
])

// MARK: Gate: the gate, from policy to socket
// OpenSSL's memory. A frame pointer would be a third of each call. No library product may have such flags.
package.targets += [Room.gate.c("CRecordBuffers", ["COpenSSL"], flags: [.unsafeFlags(["-momit-leaf-frame-pointer"])])]
package.targets += Room.gate.sources([
  "ACME": ["Cryptography", "ProcessFrame", "ProcessSignals", "TransportEngine"],  // Certificates by ACME (RFC 8555).
  // Who is admitted: registration, nonces, assertions, rules. Stores and clocks are ports.
  "AttestGate": ["AndroidKeyAttestation", "AppAttest", "Wire"],
  // A console in the browser: sign-in, forms, pages, tables and charts, and its server, on the loopback and over TLS.
  "ConsoleServing": ["ConfigurationEngine", "Observability", "ProcessFrame", "TransportEngine"],
  // A running gate: check, start, reload, upgrade, stop; the risk metric, and the pages of its console.
  "GateRuntime": ["ACME", "ConsoleServing", "GateService", "PostgresStore", "SQLiteStore", "Settings"],
  // The gate's endpoints, identities, admin server and status page.
  "GateService": ["AttestGate", "Observability", "Transport"],
  "PostgresStore": ["AttestGate", "Databases"],  // The gate's store that several gates share.
  // The gate's program, with exports and imports of keys.
  "sallyport": ["GateRuntime", "QREncoding", "SimulatedDevice"],
  "Settings": ["ConfigurationEngine", "Transport"],  // The gate's configuration: keys, layers, documents.
  "SQLiteStore": ["AttestGate", "Databases", "ProcessSignals", "GRDB"],  // The gate's store in a file.
  "Transport": ["ByteCoding"],  // The border between the engine and what it serves.
  // Event loops, TLS, HTTP/1.1 and WebSockets: the relay.
  "TransportEngine": ["CLinux", "CRecordBuffers", "Transport", "Wire"],
])
package.targets += Room.gate.tests([
  "gate-bench": ["GateFixtures", "GateRuntime"],
  "GateFixtures": ["SQLiteStore", "SimulatedDevice"],
  "GateProcesses": ["SimulatedDevice", "TestSupport", "TransportEngine"],
  "StoreConformance": ["AttestGate", "TestSupport"],
  "ACMETests": ["ACME", "GateProcesses", "PostgresServers", "attest", "sallyport"],
  "AttestGateTests": ["GateFixtures", "StoreConformance"],
  "CheckCommandTests": ["SimulatedDevice", "TestSupport", "sallyport"],
  "ClusterTests": [
    "GateFixtures", "GateProcesses", "GateRuntime", "PostgresServers", "StoreConformance", "attest", "sallyport",
  ],
  "ConformanceTests": ["GateProcesses", "sallyport"],
  "ConsoleServingTests": ["ConsoleServing"],
  "EndToEndTests": ["AttestGate", "SimulatedDevice", "TestSupport", "TransportEngine", "attest", "sallyport", "GRDB"],
  "GateRuntimeTests": ["ConsoleServing", "GateFixtures", "GateRuntime", "StoreConformance"],
  "GateServiceTests": ["GateFixtures", "GateService", "TestSupport"],
  "LoadTests": ["GateProcesses", "PostgresServers", "attest", "sallyport"],
  "ObservabilityTests": ["GateProcesses", "GateService", "attest", "sallyport"],
  "OperatorTests": ["GateProcesses", "GateService", "PostgresServers", "SQLiteStore", "attest", "sallyport"],
  "PackagingTests": ["TestSupport", "attest", "sallyport"],
  "PostgresStoreTests": ["PostgresServers", "PostgresStore", "SimulatedDevice", "StoreConformance"],
  "PreflightTests": ["GateRuntime", "SimulatedDevice", "TestSupport"],
  "RiskExchangeTests": ["GateFixtures", "GateRuntime", "TestSupport"],
  "SettingsTests": ["Settings", "TestSupport"],
  "SQLiteStoreTests": ["GateFixtures", "StoreConformance"],
  "StoreCommandTests": [
    "PostgresServers", "PostgresStore", "SQLiteStore", "SimulatedDevice", "StoreConformance", "sallyport",
  ],
  "TransportEngineTests": ["SimulatedDevice", "TestSupport", "TransportEngine"],
  "VerifyCommandTests": ["SimulatedDevice", "TestSupport", "sallyport"],
])

// MARK: Backend: the service behind the gate
package.targets += [Room.backend.library("CExpat", "expat", debian: "libexpat1-dev")]  // The parser of XML.
package.targets += Room.backend.sources([
  // The backend's program and its settings.
  "mfa-backend": ["ConsoleServing", "MFADelivery", "MFAService", "MFAStore"],
  // Codes by SMS and e-mail, and push notifications.
  "MFADelivery": [
    "ConfigurationEngine", "HTTPClientTransport", "MFADomain", "Observability", "Metrics", "ServiceLifecycle",
  ],
  // Accounts, devices, codes, trust, recovery, files of tokens: knows neither HTTP nor SQL.
  "MFADomain": ["CBOR", "CExpat", "Locking", "OneTimePasswords", "CryptoExtras"],
  // The operations by REST and by WebSocket, for the gate's identities and a provider's ID tokens.
  "MFAService": [
    "Commands", "HTTPClientTransport", "MFADomain", "MFAWire", "OIDCClient", "HTTPTypes", "Hummingbird",
    "HummingbirdCore", "Logging", "Metrics", "NIOExtras", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOWebSocket",
    "ServiceLifecycle",
  ],
  "MFAStore": ["Databases", "MFADomain", "ProcessSignals", "GRDB", "GRDBSQLite"],  // The backend's records.
])
package.targets += Room.backend.tests([
  "mfa-bench": ["ByteCoding", "PostgresServers", "ArgumentParser", "AsyncHTTPClient", "Crypto", "NIOCore", "NIOHTTP1"],
  "MFAFixtures": ["MFAService", "MFAStore", "TestSupport"],
  "MFACommandTests": ["MFAFixtures", "PostgresServers", "mfa-backend"],
  "MFADeliveryTests": ["MFADelivery", "MFAFixtures"],
  "MFADomainTests": ["MFAFixtures"],
  "MFAEndToEndTests": [
    "GateProcesses", "MFAFixtures", "MFAViewModels", "PostgresServers", "QRCodes", "SimulatedPhone", "attest",
    "authenticator", "mfa-backend", "sallyport",
  ],
  "MFAServiceTests": ["MFAFixtures", "PostgresServers"],
  "MFASettingsTests": ["ConfigurationEngine", "TestSupport", "mfa-backend"],
])

// MARK: App: what an app embeds; it builds on a Mac, without OpenSSL
package.targets += Room.app.sources([
  "AttestClient": ["Wire"],  // Devices of an app: keys, assertions, sockets through a gate.
  "MFAClient": ["AttestClient", "MFAWire"],  // The operations of the MFA backend for an app.
  "MFAViewModels": ["MFAClient"],  // The screens of an app as states and events.
  // Signing in at identity providers.
  "OIDCClient": ["Wire", "Crypto", "CryptoExtras", "JWTKit"],
])
package.targets += Room.app.tests([
  "guide-client": ["GuideShim"],
  "GuideShim": ["SimulatedDevice"],
  "AttestClientTests": ["SimulatedDevice", "TestSupport", "TransportEngine"],
  "GuideTests": ["GateProcesses", "attest", "guide-client", "sallyport"],
  "MFAClientTests": ["MFAClient", "SimulatedDevice"],
  "MFAViewModelsTests": ["MFAViewModels", "SimulatedPhone"],
  "OIDCClientTests": ["OIDCClient", "TestSupport"],
  "URLSessionExchangeTests": ["AttestClient", "TestSupport", "TransportEngine"],
])

// MARK: Simulation: devices and phones without hardware
package.targets += Room.simulation.sources([
  // Devices without hardware, of both platforms, and their authorities.
  "SimulatedDevice": ["AndroidKeyAttestation", "AppAttest", "AttestClient"],
  "SimulatedPhone": ["CBOR", "Cryptography", "MFAClient"],  // A phone with keychain, biometry and security keys.
])
package.targets += Room.simulation.tests([
  "SimulatedDeviceTests": ["SimulatedDevice"],
  "SimulatedPhoneTests": ["SimulatedPhone", "TestSupport"],
])

// MARK: Tools: programs of a person, and their libraries
package.targets += [
  Room.tools.library("CKeyutils", "libkeyutils", debian: "libkeyutils-dev"),  // The kernel's key rings.
  Room.tools.library("CLibSecret", "libsecret-1", debian: "libsecret-1-dev"),  // The keyring of a desktop.
  // Pictures of QR codes: PNG, JPEG, and the reader of codes in C++.
  Room.tools.c("CPictures", libraries: ["png", "turbojpeg", "ZXing"]),
  // What vaults of other authenticators are encrypted with: Argon2 and libsodium's streams.
  Room.tools.library("CVaultCiphers", "libargon2 libsodium", debian: "libargon2-dev", "libsodium-dev"),
]
package.targets += Room.tools.sources([
  // The client tool: devices, sockets, load, and the lab of simulated phones.
  "attest": [
    "Commands", "Inspection", "MFAViewModels", "QREncoding", "SimulatedDevice", "SimulatedPhone", "TransportEngine",
  ],
  "authenticator": ["CKeyutils", "Commands", "QRCodes", "VaultFormats"],  // The tool for one-time codes.
  // Entries, removals and merges of an encrypted vault, also on several devices.
  "AuthenticatorVault": ["Locking", "OneTimePasswords", "CryptoExtras"],
  // The tool for access tokens of identity providers.
  "bearer": ["ConfigurationEngine", "HTTPClientTransport", "OIDCClient", "QREncoding", "SecretService"],
  "QRCodes": ["CPictures", "QREncoding"],  // QR codes in pictures.
  "SecretService": ["CLibSecret"],  // The keyring of a desktop.
  "VaultFormats": ["AuthenticatorVault", "CVaultCiphers", "SwiftProtobuf"],  // Files of other authenticators.
])
package.targets += Room.tools.tests([
  "keyring-probe": ["SecretService"],
  "AttestToolTests": [
    "Commands", "MFAClient", "SimulatedDevice", "TestSupport", "TransportEngine", "attest", "sallyport",
  ],
  "AuthenticatorToolTests": ["Commands", "QRCodes", "TestSupport", "VaultFormats", "authenticator"],
  "AuthenticatorVaultTests": ["AuthenticatorVault", "TestSupport"],
  "BearerSettingsTests": ["OIDCClient", "TestSupport", "bearer"],
  "BearerToolTests": ["AttestClient", "Commands", "OIDCClient", "TestSupport", "bearer"],
  "DeviceLabTests": ["MFAViewModels", "SimulatedPhone", "attest"],
  "QRCodesTests": ["QRCodes", "TestSupport"],
  "SecretServiceTests": ["TestSupport", "keyring-probe"],
  "VaultFormatsTests": ["TestSupport", "VaultFormats"],
  "VaultSyncTests": ["AuthenticatorVault", "TestSupport"],
])

// MARK: The fuzz targets
// Under the sanitizer and with coverage they are a library, for which `scripts/fuzz` links a program; those of the tools
// need packages that take long to build, and can be left out. Otherwise they are a test, which checks their seeds.
let fuzzed = (
  gate: ["GateService", "Inspection", "Settings", "SimulatedDevice", "TransportEngine"],
  tools: ["OIDCClient", "QRCodes", "VaultFormats"]
)
package.targets.append(
  fuzzing
    ? .target(
      name: "Fuzzing", dependencies: (fuzzed.gate + (coreOnly ? [] : fuzzed.tools)).map(dependency),
      path: "Tests/Gate/Fuzzing", exclude: ["SeedTests.swift"] + (coreOnly ? ["Tools"] : []),
      swiftSettings: ownSettings + (coreOnly ? [.define("GATE_ONLY")] : []))
    : .testTarget(
      name: "FuzzingTests", dependencies: (fuzzed.gate + fuzzed.tools + ["TestSupport"]).map(dependency),
      path: "Tests/Gate/Fuzzing", swiftSettings: testSettings))

// MARK: What is left out
/// The names of what a target depends on.
func needs(_ target: Target) -> [String] {
  target.dependencies.map {
    switch $0 {
    case .byNameItem(let name, _), .targetItem(let name, _), .productItem(let name, _, _, _): name
    @unknown default: ""
    }
  }
}

/// Leaves only the given targets and what they need.
@MainActor func keep(_ names: Set<String>) {
  var (needed, open) = (names, names)
  while let name = open.popFirst() {
    let next = package.targets.first { $0.name == name }.map(needs) ?? []
    open.formUnion(next.filter { needed.insert($0).inserted })
  }
  package.products = []
  package.targets.removeAll { !needed.contains($0.name) }
}

// The backend and the tools of a person need swift-crypto or one of these libraries, and so do their tests.
if gateOnly {
  var gone: Set = ["CExpat", "CKeyutils", "CLibSecret", "CPictures", "CVaultCiphers", "Crypto"]
  while let next = package.targets.first(where: { !gone.contains($0.name) && !gone.isDisjoint(with: needs($0)) }) {
    gone.insert(next.name)
  }
  package.targets.removeAll { gone.contains($0.name) }
}
// For work on the backend alone: the gate's tests take minutes to build.
if isSet("MFA_ONLY") { package.targets.removeAll { $0.type == .test && !$0.name.hasPrefix("MFA") } }
// Under a sanitizer: the tests of what threads share.
if coreOnly || fuzzing {
  let core: Set = [
    "AttestGateTests", "GateServiceTests", "GroupCommitTests", "JSONLogTests", "LockingTests", "PrometheusTests",
    "SQLiteStoreTests", "TransportEngineTests",
  ]
  keep(fuzzing ? core.union(["Fuzzing"]) : core)
  if fuzzing { package.products = [.library(name: "Fuzzing", type: .static, targets: ["Fuzzing"])] }
}
// For work on some test targets, for example `SALLYPORT_TESTS=MFACommandTests,MFASettingsTests`.
if let names = Context.environment["SALLYPORT_TESTS"] { keep(Set(names.split(separator: ",").map(String.init))) }
// For work on one room, for example `SALLYPORT_ROOM=Backend`.
if let name = Context.environment["SALLYPORT_ROOM"] {
  keep(Set(package.targets.filter { $0.path?.contains("/\(name)/") == true }.map(\.name)))
}
