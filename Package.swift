// swift-tools-version: 6.2
import PackageDescription

/// Continuous integration sets this: a warning then fails the build. Not for users, whose compiler may be newer and
/// warn of more.
let isStrict = Context.environment["SALLYPORT_STRICT"] == "1"

/// `scripts/fuzz` sets this, and so does `scripts/test --sanitize core` for its tests under the address sanitizer: one
/// build serves both. Only the project's own code counts what it covers: counters in other packages would take longer to
/// build and lead libFuzzer to places that are not tested.
let fuzzing = Context.environment["SALLYPORT_FUZZING"] == "1"

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
  ] + (isStrict ? [.treatAllWarnings(as: .error)] : [])

/// Of several options `-sanitize` the compiler heeds the last one, which is this.
let ownSettings = settings + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])

/// The rooms of the house. Each target has its folder in one of them, below `Sources` or `Tests`. `RoomTests` knows
/// from which other rooms a room may import.
enum Room: String {
  /// For everyone: values and borders without a process around them.
  case common = "Common"
  /// What every program that is operated needs, written once.
  case daemon = "Daemon"
  /// Pure verification of devices: no clock, no input or output, nothing asynchronous.
  case attestation = "Attestation"
  /// The gate, from policy to socket.
  case gate = "Gate"
  /// The service behind the gate.
  case backend = "Backend"
  /// What an app embeds. It builds on a Mac, without OpenSSL.
  case app = "App"
  /// Devices and phones without hardware.
  case simulation = "Simulation"
  /// Programs of a person, and their libraries.
  case tools = "Tools"

  func source(_ folder: String) -> String { "Sources/\(rawValue)/\(folder)" }
  func test(_ folder: String) -> String { "Tests/\(rawValue)/\(folder)" }
}

/// A Swift target: it names all that it imports.
func target(_ room: Room, _ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(
    name: name, dependencies: dependencies, path: room.source(name),
    swiftSettings: ownSettings
      + (ofAdmission.contains(name) ? [.enableUpcomingFeature("NonisolatedNonsendingByDefault")] : []))
}

/// The targets through which each admission passes. Their asynchronous functions go on where their caller runs, which is
/// an event loop: otherwise each call would ask Swift's runtime to which executor it belongs, some thirty times in all.
let ofAdmission: Set<String> = [
  "Transport", "TransportEngine", "AttestGate", "GateService", "SQLiteStore", "PostgresStore",
]

func executable(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: room.source(name), swiftSettings: settings)
}

/// A target of C sources.
func cTarget(
  _ room: Room, _ name: String, _ dependencies: [Target.Dependency] = [], settings: [CSetting] = []
) -> Target {
  .target(name: name, dependencies: dependencies, path: room.source(name), cSettings: settings)
}

/// A C library of the system; `package` is the Debian package that has its headers.
func library(_ room: Room, _ name: String, pkgConfig: String? = nil, package: String? = nil) -> Target {
  .systemLibrary(
    name: name, path: room.source(name), pkgConfig: pkgConfig, providers: package.map { [.apt([$0])] })
}

/// What continuous integration tests is optimized; the tests themselves are not, which halves the time to compile them.
let testSettings = settings + (isStrict ? [.unsafeFlags(["-Onone"])] : [])

func tests(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: room.test(name), swiftSettings: testSettings)
}

/// What several test targets share; it stands among them.
func support(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: room.test(name), swiftSettings: ownSettings)
}

/// A program that tests or measurements run; it stands among them.
func program(_ room: Room, _ name: String, in folder: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: room.test(folder), swiftSettings: settings)
}

// Environment variables, not package traits, leave parts out: a trait can drop a dependency of a target, and cannot
// drop the target itself, so that every file of the backend and of its tests would need an `#if`.

/// Whether to leave out the MFA backend, its server framework and NIO.
let gateOnly = Context.environment["SALLYPORT_GATE_ONLY"] == "1"

/// The commit for `--version`, with `+` if files differ from it. The scripts that build for other machines set it.
/// `Context.gitInformation` would be wrong: the package manager keeps the result of this manifest until the manifest or
/// the environment changes, which a new commit does not do.
let commit = (Context.environment["SALLYPORT_COMMIT"] ?? "").filter { $0.isLetter || $0.isNumber || $0 == "+" }

let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let protobuf = Target.Dependency.product(name: "SwiftProtobuf", package: "swift-protobuf")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let httpClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let nio = ["NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket"].map {
  Target.Dependency.product(name: $0, package: "swift-nio")
}
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")

let package = Package(
  name: "sallyport",
  platforms: [.macOS(.v14), .iOS(.v16)],
  // `AttestClient`, `ByteCoding`, `GateWire`, `HTTPExchange`, `URLSessionExchange`, `MFAClient`, `MFAViewModels`,
  // `IDTokens`, `MFAWire` and `OIDCClient` are for Apple's platforms, too; the others need OpenSSL and Linux.
  products: [
    .library(name: "AndroidKeyAttestation", targets: ["AndroidKeyAttestation"]),
    .library(name: "AppAttest", targets: ["AppAttest"]),
    .library(name: "ByteCoding", targets: ["ByteCoding"]),
    .library(name: "CBOR", targets: ["CBOR"]),
    .library(name: "Cryptography", targets: ["Cryptography"]),
    .library(name: "Explanations", targets: ["Explanations"]),
    .library(name: "GateWire", targets: ["GateWire"]),
    .library(name: "HTTPExchange", targets: ["HTTPExchange"]),
    .library(name: "URLSessionExchange", targets: ["URLSessionExchange"]),
    .library(name: "AttestClient", targets: ["AttestClient"]),
    .library(name: "MFAWire", targets: ["MFAWire"]),
    .library(name: "MFAClient", targets: ["MFAClient"]),
    .library(name: "MFAViewModels", targets: ["MFAViewModels"]),
    .library(name: "SimulatedDevice", targets: ["SimulatedDevice"]),
    .library(name: "SimulatedPhone", targets: ["SimulatedPhone"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
  ],
  targets: [
    // MARK: Common

    library(.common, "COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
    library(.common, "CLinux"),
    library(.common, "CLibCBOR", pkgConfig: "libcbor", package: "libcbor-dev"),
    library(.common, "CQREncode", pkgConfig: "libqrencode", package: "libqrencode-dev"),
    cTarget(.common, "CSignals"),
    // Bytes and texts of strangers: base64, hex, JSON, times, text for terminals.
    target(.common, "ByteCoding"),
    // What devices and gates say to each other.
    target(.common, "GateWire"),
    // HTML in which nothing can be forgotten to be escaped.
    target(.common, "Markup"),
    // Which proxy a request to a server goes through, by the environment.
    target(.common, "ForwardProxies", ["ByteCoding"]),
    // QR codes of texts.
    target(.common, "QREncoding", ["CQREncode"]),
    // CBOR and deterministic encoding (RFC 8949), behind strict limits.
    target(.common, "CBOR", ["CLibCBOR"]),
    // Certificates, ASN.1, CMS, signatures and sealed boxes, with OpenSSL.
    target(.common, "Cryptography", ["ByteCoding", "COpenSSL", "Locking"]),
    // The rules of ID tokens and of documents of OpenID providers, without cryptography.
    target(.common, "IDTokens", ["ByteCoding"]),
    // Values behind locks, threads of their own.
    target(.common, "Locking"),
    // Signals, and files that a signal must not leave behind.
    target(.common, "ProcessSignals", ["CSignals", "Locking"]),
    // An HTTP request and its response, without a client.
    target(.common, "HTTPExchange", ["Locking"]),
    // What apps and the MFA backend say to each other.
    target(.common, "MFAWire"),

    // MARK: Daemon

    library(.daemon, "CPostgres", pkgConfig: "libpq", package: "libpq-dev"),
    // Only this file is compiled again for each commit.
    .target(
      name: "CSourceCommit", path: Room.daemon.source("CSourceCommit"),
      cSettings: [.define("SALLYPORT_COMMIT", to: "\"\(commit)\"")]),
    cTarget(.daemon, "CEarlySignals"),
    cTarget(.daemon, "CUpgradeChild"),
    // How every program speaks: failures, console, help, standard places, version.
    target(.daemon, "Commands", ["ByteCoding", "CLinux", "CSourceCommit", "ProcessSignals", argumentParser]),
    // The browser of this machine: starts it, and names the user whose connection comes to a port of the loopback.
    target(.daemon, "LocalBrowser", ["Commands"]),
    // The frame of a console in the browser: sign-in, forms, pages, tables, charts.
    target(
      .daemon, "ConsoleFrame",
      ["ByteCoding", "Commands", "ConsoleSettings", "Cryptography", "LocalBrowser", "Locking", "Markup"]),
    // The settings of a console over TLS: keys, kinds, faults.
    target(.daemon, "ConsoleSettings", ["ConfigurationEngine"]),
    // Sessions of PostgreSQL, group commit, files of SQLite.
    target(.daemon, "Databases", ["CLinux", "CPostgres", "Locking"]),
    // Log lines, metrics and traces.
    target(.daemon, "Observability", ["ByteCoding", "Locking", logging]),
    // YAML with the position of each value.
    target(.daemon, "YAMLSource", [yams]),
    // Settings from flags, environment, file and defaults, with every fault at its place, and documents from one table.
    target(.daemon, "ConfigurationEngine", ["ByteCoding", "Commands", "YAMLSource"]),
    // Signed messages for a receiver of the operator's, from a queue on disk.
    target(
      .daemon, "Webhooks", ["ByteCoding", "ConfigurationEngine", "Cryptography", "Locking", "Observability", logging]),
    // systemd, watchdog and graceful upgrades.
    target(.daemon, "ProcessFrame", ["CUpgradeChild", "Locking"]),

    // MARK: Attestation

    // The result of each rule, in words.
    target(.attestation, "Explanations", ["ByteCoding"]),
    // Apple's App Attest: attestations, assertions, receipts.
    target(.attestation, "AppAttest", ["ByteCoding", "CBOR", "Cryptography", "Explanations"]),
    // Android's key attestation: chains and key descriptions.
    target(.attestation, "AndroidKeyAttestation", ["ByteCoding", "Cryptography", "Explanations"]),
    // What a device sent, as a tree of fields with offsets.
    target(.attestation, "Inspection", ["AndroidKeyAttestation", "AppAttest", "ByteCoding", "CBOR", "Cryptography"]),

    // MARK: Gate

    // OpenSSL calls these functions for each block of memory. A frame pointer would be a third of them. No library product
    // needs this target: packages with such flags cannot be dependencies of others.
    cTarget(.gate, "CRecordBuffers", ["COpenSSL"], settings: [.unsafeFlags(["-momit-leaf-frame-pointer"])]),
    // Who is admitted: registration, nonces, assertions, rules. Stores and clocks are ports.
    target(
      .gate, "AttestGate", ["AndroidKeyAttestation", "AppAttest", "ByteCoding", "Cryptography", "GateWire", "Locking"]),
    // The border between the engine and what it serves.
    target(.gate, "Transport", ["ByteCoding"]),
    // Event loops, TLS, HTTP/1.1 and WebSockets: the relay.
    target(
      .gate, "TransportEngine",
      ["ByteCoding", "CLinux", "COpenSSL", "CRecordBuffers", "ForwardProxies", "Locking", "Transport"]),
    // The gate's endpoints, identities, admin server and status page.
    target(
      .gate, "GateService",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateWire", "Locking",
        "Markup", "Observability", "Transport", logging,
      ]),
    // The gate's store in a file.
    target(
      .gate, "SQLiteStore",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Databases", "Locking",
        "ProcessSignals", grdb,
      ]),
    // The gate's store that several gates share.
    target(
      .gate, "PostgresStore",
      ["AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Databases", "Locking"]),
    // Export and import of keys.
    target(.gate, "KeyTransfer", ["AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography"]),
    // The gate's configuration: keys, layers, documents.
    target(.gate, "Settings", ["ByteCoding", "Commands", "ConfigurationEngine", "ConsoleSettings"]),
    // Certificates by ACME (RFC 8555).
    target(
      .gate, "ACME",
      [
        "ByteCoding", "Cryptography", "ForwardProxies", "Locking", "ProcessFrame", "ProcessSignals", "Transport",
        "TransportEngine",
      ]),
    // What a gate needs, tried before it starts.
    target(
      .gate, "Preflight",
      [
        "ACME", "AndroidKeyAttestation", "AttestGate", "ByteCoding", "ConfigurationEngine", "ConsoleServing",
        "Cryptography", "ForwardProxies", "Settings", "Transport", "TransportEngine",
      ]),
    // Receipts of App Attest, exchanged with Apple for the risk metric.
    target(.gate, "RiskExchange", ["AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Locking"]),
    // Client certificates of debug builds.
    target(.gate, "ClientAuthority", ["ByteCoding", "Cryptography"]),
    // A running gate: start, reload, upgrade, stop.
    target(
      .gate, "GateRuntime",
      [
        "ACME", "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CLinux", "Commands",
        "ConfigurationEngine", "Cryptography", "Databases", "ForwardProxies", "GateService", "Locking",
        "Observability", "PostgresStore", "Preflight", "ProcessFrame", "ProcessSignals", "RiskExchange", "SQLiteStore",
        "Settings", "Transport", "TransportEngine", "Webhooks", logging,
      ]),
    // The server of a console: on the loopback, and over TLS for people on other machines.
    target(
      .gate, "ConsoleServing",
      [
        "ByteCoding", "Commands", "ConfigurationEngine", "ConsoleFrame", "ConsoleSettings", "Cryptography",
        "ForwardProxies", "IDTokens", "LocalBrowser", "Observability", "ProcessFrame", "ProcessSignals", "Transport",
        "TransportEngine", logging,
      ]),
    // The pages of the gate's console.
    target(.gate, "GateConsole", ["ByteCoding", "ConsoleFrame", "GateService", "Markup"]),
    // The gate's program.
    executable(
      .gate, "sallyport",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CEarlySignals", "ClientAuthority",
        "Commands", "ConfigurationEngine", "ConsoleFrame", "ConsoleServing", "ConsoleSettings", "Cryptography",
        "Explanations", "GateConsole", "GateRuntime", "GateService", "KeyTransfer", "LocalBrowser", "Locking",
        "Observability", "Preflight", "ProcessSignals", "QREncoding", "RiskExchange", "Settings", "SimulatedDevice",
        "Transport", "TransportEngine", logging, argumentParser,
      ]),

    // MARK: App

    // HTTP by URLSession.
    target(.app, "URLSessionExchange", ["HTTPExchange"]),
    // Devices of an app: keys, assertions, sockets through a gate.
    target(
      .app, "AttestClient",
      [
        "ByteCoding", "GateWire", "HTTPExchange", "Locking", "URLSessionExchange",
        .target(name: "Cryptography", condition: .when(platforms: [.linux])),
      ]),
    // The operations of the MFA backend for an app.
    target(.app, "MFAClient", ["AttestClient", "ByteCoding", "Locking", "MFAWire"]),
    // The screens of an app as states and events.
    target(.app, "MFAViewModels", ["ByteCoding", "Locking", "MFAClient", "MFAWire"]),

    // MARK: Simulation

    // A phone with keychain, biometry and security keys.
    target(.simulation, "SimulatedPhone", ["ByteCoding", "CBOR", "Cryptography", "Locking", "MFAClient", "MFAWire"]),
    // Simulated phones on a page, and scenarios.
    target(
      .simulation, "DeviceLab",
      [
        "ByteCoding", "Cryptography", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "Markup", "QREncoding",
        "SimulatedPhone",
      ]),
    // Devices without hardware, of both platforms, and their authorities.
    target(
      .simulation, "SimulatedDevice",
      ["AndroidKeyAttestation", "AppAttest", "AttestClient", "ByteCoding", "CBOR", "Cryptography", "Locking"]),

    // MARK: Tools

    library(.tools, "CArgon2", pkgConfig: "libargon2", package: "libargon2-dev"),
    library(.tools, "CKeyutils", pkgConfig: "libkeyutils", package: "libkeyutils-dev"),
    library(.tools, "CPNG", pkgConfig: "libpng", package: "libpng-dev"),
    library(.tools, "CSodium", pkgConfig: "libsodium", package: "libsodium-dev"),
    library(.tools, "CTurboJPEG", pkgConfig: "libturbojpeg", package: "libturbojpeg0-dev"),
    executable(.tools, "attest", ["AttestTool", "Commands", "ProcessSignals", "TransportEngine"]),
    // The client tool.
    target(
      .tools, "AttestTool",
      [
        "AndroidKeyAttestation", "AttestClient", "ByteCoding", "Commands", "Cryptography", "DeviceLab", "GateWire",
        "Inspection", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "ProcessSignals", "QREncoding",
        "SimulatedDevice", "SimulatedPhone", "Transport", "TransportEngine", argumentParser,
      ]),

    // MARK: Common, tests

    support(.common, "TestSupport", ["Locking"]),
    tests(.common, "ByteCodingTests", ["ByteCoding"]),
    tests(.common, "CBORTests", ["ByteCoding", "CBOR", "TestSupport"]),
    tests(.common, "CertificateIssuingTests", ["ByteCoding", "Cryptography", "TestSupport"]),
    tests(.common, "CryptographyTests", ["ByteCoding", "Cryptography", "TestSupport"]),
    tests(.common, "LockingTests", ["Locking"]),
    tests(.common, "ForwardProxiesTests", ["ByteCoding", "ForwardProxies", "TestSupport"]),
    tests(.common, "ProcessSignalsTests", ["Locking", "ProcessSignals", "TestSupport"]),

    // MARK: Daemon, tests

    support(.daemon, "PostgresServers", ["Locking", "TestSupport"]),
    tests(.daemon, "JSONLogTests", ["ByteCoding", "Observability", logging]),
    tests(.daemon, "GroupCommitTests", ["Databases", "Locking"]),
    tests(.daemon, "PrometheusTests", ["Observability"]),
    tests(.daemon, "TelemetryTests", ["ByteCoding", "Observability"]),
    tests(.daemon, "StandardPlacesTests", ["Commands"]),
    tests(
      .daemon, "WebhooksTests",
      ["ByteCoding", "ConfigurationEngine", "Locking", "Observability", "TestSupport", "Webhooks", logging]),
    tests(.daemon, "ConsoleFrameTests", ["ByteCoding", "ConsoleFrame", "LocalBrowser", "Locking", "Markup"]),
    tests(.daemon, "SystemdTests", ["ProcessFrame", "TestSupport"]),
    tests(.daemon, "GracefulUpgradeTests", ["ProcessFrame", "TestSupport"]),

    // MARK: Attestation, tests

    tests(
      .attestation, "AppAttestMintedTests", ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "SimulatedDevice"]),
    tests(
      .attestation, "AppAttestTests",
      ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "Explanations", "SimulatedDevice", "TestSupport"]),
    tests(
      .attestation, "AndroidKeyAttestationTests",
      ["AndroidKeyAttestation", "ByteCoding", "CBOR", "Cryptography", "Explanations", "SimulatedDevice", "TestSupport"]),
    tests(
      .attestation, "InspectionTests",
      ["ByteCoding", "CBOR", "Cryptography", "Inspection", "SimulatedDevice", "TestSupport"]),

    // MARK: Gate, tests

    support(
      .gate, "GateFixtures",
      ["AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Locking", "SQLiteStore", "SimulatedDevice"]),
    support(
      .gate, "GateProcesses",
      ["ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine"]),
    program(
      .gate, "gate-bench", in: "GateBenchmark",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "ConsoleFrame", "Cryptography", "Databases",
        "GateConsole", "GateFixtures", "GateService", "GateWire", "Locking", "Observability", "PostgresStore",
        "SQLiteStore", "SimulatedDevice", "Transport", argumentParser, logging,
      ]),
    support(
      .gate, "StoreConformance",
      ["AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "TestSupport"]),
    tests(
      .gate, "AttestGateTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CBOR", "Cryptography", "GateFixtures",
        "GateWire", "Locking", "SQLiteStore", "SimulatedDevice", "StoreConformance", "TestSupport",
      ]),
    tests(
      .gate, "ACMETests",
      [
        "ACME", "ByteCoding", "Cryptography", "ForwardProxies", "GateProcesses", "Locking", "PostgresServers",
        "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(
      .gate, "RiskExchangeTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures", "Locking", "RiskExchange",
        "SimulatedDevice", "TestSupport",
      ]),
    tests(
      .gate, "ClusterTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Databases", "GateFixtures",
        "GateProcesses", "Locking", "PostgresServers", "PostgresStore", "RiskExchange", "SQLiteStore",
        "SimulatedDevice",
        "StoreConformance", "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(.gate, "ConformanceTests", ["GateProcesses", "SimulatedDevice", "TestSupport", "sallyport"]),
    tests(
      .gate, "EndToEndTests",
      [
        "AttestGate", "ByteCoding", "Cryptography", "GateWire", "Locking", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport", grdb,
      ]),
    tests(
      .gate, "GateServiceTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures", "GateService", "GateWire", "Locking",
        "Markup", "Observability", "SQLiteStore", "SimulatedDevice", "TestSupport", "Transport", logging,
      ]),
    tests(
      .gate, "OperatorTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateProcesses",
        "GateService", "KeyTransfer", "Locking", "PostgresServers", "SQLiteStore", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport", logging,
      ]),
    tests(
      .gate, "GateRuntimeTests",
      [
        "ACME", "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Commands", "ConfigurationEngine",
        "Cryptography", "ForwardProxies", "GateFixtures", "GateRuntime", "GateService", "Locking", "Observability",
        "Preflight", "ProcessFrame", "RiskExchange", "SQLiteStore", "Settings", "SimulatedDevice", "StoreConformance",
        "TestSupport",
        "Transport", "TransportEngine", grdb, logging,
      ]),
    tests(
      .gate, "LoadTests",
      [
        "ByteCoding", "Cryptography", "GateProcesses", "Locking", "PostgresServers", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(
      .gate, "SQLiteStoreTests",
      ["AppAttest", "AttestGate", "ByteCoding", "GateFixtures", "SQLiteStore", "StoreConformance", grdb]),
    tests(
      .gate, "PostgresStoreTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Databases", "PostgresServers", "PostgresStore", "SimulatedDevice",
        "StoreConformance", "TestSupport",
      ]),
    tests(
      .gate, "StoreCommandTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Databases", "PostgresServers", "PostgresStore", "SQLiteStore",
        "SimulatedDevice", "StoreConformance", "TestSupport", "sallyport", grdb,
      ]),
    tests(
      .gate, "PreflightTests",
      [
        "AttestGate", "ByteCoding", "ConfigurationEngine", "Cryptography", "ForwardProxies", "Preflight",
        "SQLiteStore", "Settings", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine",
      ]),
    tests(.gate, "ClientAuthorityTests", ["ByteCoding", "ClientAuthority", "Cryptography", "TestSupport"]),
    tests(
      .gate, "ObservabilityTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "GateProcesses", "GateService", "GateWire", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(.gate, "PackagingTests", ["TestSupport", "attest", "sallyport"]),
    tests(.gate, "CheckCommandTests", ["ByteCoding", "SimulatedDevice", "TestSupport", "sallyport"]),
    tests(
      .gate, "SettingsTests",
      ["ByteCoding", "Commands", "ConfigurationEngine", "ConsoleSettings", "Settings", "TestSupport"]),
    tests(
      .gate, "TransportEngineTests",
      [
        "ByteCoding", "COpenSSL", "ClientAuthority", "Cryptography", "ForwardProxies", "Locking", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine",
      ]),
    tests(
      .gate, "VerifyCommandTests",
      ["AppAttest", "ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport", "sallyport"]),

    // MARK: App, tests

    support(.app, "GuideShim", ["AttestClient", "Cryptography", "Locking", "SimulatedDevice"]),
    program(.app, "guide-client", in: "GuideClient", ["GuideShim", "SimulatedDevice"]),
    tests(
      .app, "URLSessionExchangeTests",
      ["HTTPExchange", "TestSupport", "Transport", "TransportEngine", "URLSessionExchange"]),
    tests(
      .app, "AttestClientTests",
      [
        "AndroidKeyAttestation", "AttestClient", "ByteCoding", "Cryptography", "GateWire", "Locking", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine",
      ]),
    tests(
      .app, "GuideTests",
      [
        "GateProcesses", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "attest", "guide-client",
        "sallyport",
      ]),
    tests(
      .app, "MFAClientTests", ["AttestClient", "ByteCoding", "Locking", "MFAClient", "MFAWire", "SimulatedDevice"]),
    tests(
      .app, "MFAViewModelsTests",
      [
        "AttestClient", "ByteCoding", "Cryptography", "Locking", "MFAClient", "MFAViewModels", "MFAWire",
        "SimulatedPhone",
      ]),

    // MARK: Simulation, tests

    tests(
      .simulation, "DeviceLabTests",
      ["ByteCoding", "DeviceLab", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "SimulatedPhone"]),
    tests(
      .simulation, "SimulatedPhoneTests",
      ["ByteCoding", "Cryptography", "MFAClient", "MFAWire", "SimulatedPhone", "TestSupport"]),
    tests(
      .simulation, "SimulatedDeviceTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestClient", "ByteCoding", "Cryptography", "Locking",
        "SimulatedDevice",
      ]),

    // MARK: Tools, tests

    tests(
      .tools, "AttestToolTests",
      [
        "AndroidKeyAttestation", "AttestClient", "AttestTool", "ByteCoding", "Commands", "Cryptography", "GateWire",
        "Locking", "MFAClient", "MFAWire", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "attest",
        "sallyport",
      ]),
  ]
)

if !gateOnly {
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
  ]
  package.targets += [
    // MARK: Common

    // HOTP and TOTP (RFC 4226, RFC 6238), and otpauth links.
    target(.common, "OneTimePasswords", ["ByteCoding", crypto]),

    // MARK: App

    // Signing in at identity providers, and the rules of ID tokens.
    target(
      .app, "OIDCClient",
      [
        "ByteCoding", "HTTPExchange", "IDTokens", "Locking", crypto, cryptoExtras, jwtKit,
        .target(name: "ProcessSignals", condition: .when(platforms: [.linux])),
      ]),

    // MARK: Tools

    .target(name: "CZXing", path: Room.tools.source("CZXing"), linkerSettings: [.linkedLibrary("ZXing")]),
    // Entries, removals and merges of an encrypted vault.
    target(.tools, "AuthenticatorVault", ["ByteCoding", "OneTimePasswords", crypto, cryptoExtras]),
    // Files of other authenticators.
    .target(
      name: "VaultFormats",
      dependencies: [
        "AuthenticatorVault", "ByteCoding", "CArgon2", "CSodium", "OneTimePasswords", crypto, cryptoExtras, protobuf,
      ],
      path: Room.tools.source("VaultFormats"), exclude: ["OTPMigration.proto"], swiftSettings: ownSettings),
    // A vault on several devices.
    target(
      .tools, "VaultSync",
      ["AuthenticatorVault", "Locking", .target(name: "ProcessSignals", condition: .when(platforms: [.linux]))]),
    // QR codes in pictures.
    target(.tools, "QRCodes", ["CPNG", "CTurboJPEG", "CZXing", "QREncoding"]),
  ]
}

if !gateOnly && !fuzzing {
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ]
  package.products += [
    .library(name: "OneTimePasswords", targets: ["OneTimePasswords"]),
    .library(name: "AuthenticatorVault", targets: ["AuthenticatorVault"]),
    .library(name: "VaultFormats", targets: ["VaultFormats"]),
    .library(name: "VaultSync", targets: ["VaultSync"]),
    .library(name: "QRCodes", targets: ["QRCodes"]),
    .library(name: "OIDCClient", targets: ["OIDCClient"]),
  ]
  package.targets += [
    // MARK: Daemon

    // HTTP of servers and tools, with faults in words.
    target(
      .daemon, "HTTPClientTransport",
      [
        "ForwardProxies", "HTTPExchange", "Locking", crypto, httpClient, nioSSL,
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
        .product(name: "NIOTLS", package: "swift-nio"),
      ] + nio),

    // MARK: Backend

    // Accounts, devices, codes, trust, recovery: knows neither HTTP nor SQL.
    target(.backend, "MFADomain", ["ByteCoding", "CBOR", "Locking", "OneTimePasswords", crypto, cryptoExtras]),
    library(.backend, "CExpat", pkgConfig: "expat", package: "libexpat1-dev"),
    // Files of hardware tokens (PSKC), and tables of other servers' secrets.
    target(.backend, "MFAImports", ["ByteCoding", "CExpat", "MFADomain", "OneTimePasswords", crypto, cryptoExtras]),
    // The backend's records in SQLite and PostgreSQL.
    target(
      .backend, "MFAStore",
      [
        "ByteCoding", "Databases", "Locking", "MFADomain", "OneTimePasswords", crypto, grdb,
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ]),
    // The gate's identities, and ID tokens of a provider.
    target(
      .backend, "MFATokens",
      [
        "ByteCoding", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "Locking", "MFADomain", "OIDCClient",
        crypto, httpClient, nioSSL, logging,
      ] + nio),
    // Codes by SMS and e-mail, and push notifications.
    target(
      .backend, "MFADelivery",
      [
        "ByteCoding", "ConfigurationEngine", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "Locking",
        "MFADomain", "Observability", "Webhooks", crypto, cryptoExtras, httpClient, lifecycle, logging, metrics, nioSSL,
      ] + nio),
    // The operations by REST and by WebSocket.
    target(
      .backend, "MFAService",
      [
        "ByteCoding", "Commands", "Locking", "MFADomain", "MFATokens", "MFAWire", "OneTimePasswords", hummingbird,
        hummingbirdCore, lifecycle, logging, metrics, .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOExtras", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
      ] + nio),
    // The backend's configuration.
    target(.backend, "MFASettings", ["ByteCoding", "ConfigurationEngine", "ConsoleSettings", "MFADomain"]),
    // The backend's program.
    executable(
      .backend, "mfa-backend",
      [
        "ByteCoding", "CEarlySignals", "Commands", "ConfigurationEngine", "ConsoleFrame", "ConsoleServing",
        "ConsoleSettings", "Databases", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "LocalBrowser",
        "Locking", "MFADelivery", "MFADomain", "MFAImports", "MFAService", "MFASettings", "MFAStore", "MFATokens",
        "MFAWire", "Markup", "Observability", "ProcessFrame", "ProcessSignals", metrics, httpClient, lifecycle, logging,
        argumentParser,
      ] + nio),

    // MARK: Tools

    library(.tools, "CLibSecret", pkgConfig: "libsecret-1", package: "libsecret-1-dev"),
    // The identity providers of a user.
    target(.tools, "BearerSettings", ["ByteCoding", "OIDCClient", "YAMLSource"]),
    // The keyring of a desktop.
    target(.tools, "SecretService", ["CLibSecret"]),
    // The tool for access tokens.
    target(
      .tools, "BearerTool",
      [
        "BearerSettings", "ByteCoding", "Commands", "ForwardProxies", "HTTPClientTransport", "HTTPExchange",
        "LocalBrowser", "OIDCClient", "QREncoding", "SecretService", argumentParser,
      ] + nio),
    executable(.tools, "bearer", ["BearerTool", "Commands", "ProcessSignals"]),
    // The tool for one-time codes.
    target(
      .tools, "AuthenticatorTool",
      [
        "AuthenticatorVault", "ByteCoding", "CKeyutils", "Commands", "OneTimePasswords", "ProcessSignals", "QRCodes",
        "QREncoding", "VaultFormats", "VaultSync", argumentParser,
      ]),
    executable(.tools, "authenticator", ["AuthenticatorTool", "Commands", "ProcessSignals"]),

    // MARK: Common, tests

    tests(.common, "OneTimePasswordsTests", ["OneTimePasswords", "TestSupport"]),

    // MARK: Daemon, tests

    tests(
      .daemon, "HTTPClientTransportTests",
      ["Cryptography", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "OIDCClient", "TestSupport", crypto]),

    // MARK: Backend, tests

    support(
      .backend, "MFAFixtures",
      [
        "ByteCoding", "CBOR", "Locking", "MFADomain", "MFAService", "MFAStore", "MFATokens", "MFAWire", "OIDCClient",
        "TestSupport", crypto, cryptoExtras, jwtKit, httpClient, logging,
      ] + nio),
    program(
      .backend, "mfa-bench", in: "MFABenchmark",
      ["ByteCoding", "PostgresServers", "TestSupport", crypto, httpClient, argumentParser] + nio),
    tests(.backend, "MFASettingsTests", ["ConfigurationEngine", "MFASettings", "TestSupport"]),
    tests(
      .backend, "MFADomainTests",
      [
        "ByteCoding", "CBOR", "Locking", "MFADomain", "MFAFixtures", "MFAImports", "MFAStore", "OneTimePasswords",
        "TestSupport",
        crypto,
      ]),
    tests(
      .backend, "MFAServiceTests",
      [
        "ByteCoding", "Databases", "Locking", "MFADomain", "MFAFixtures", "MFAService", "MFAStore", "MFATokens",
        "MFAWire", "OIDCClient", "OneTimePasswords", "PostgresServers", "TestSupport", crypto, logging, grdb,
      ] + nio),
    tests(
      .backend, "MFACommandTests",
      ["ByteCoding", "MFADomain", "MFAFixtures", "PostgresServers", "TestSupport", "mfa-backend"]),
    tests(
      .backend, "MFAEndToEndTests",
      [
        "AttestClient", "AttestTool", "ByteCoding", "GateProcesses", "Locking", "MFAClient", "MFADomain", "MFAFixtures",
        "MFAStore", "MFAViewModels", "MFAWire", "PostgresServers", "QRCodes", "QREncoding", "SimulatedDevice",
        "SimulatedPhone", "TestSupport", "TransportEngine", "attest", "authenticator", "mfa-backend", "sallyport",
        crypto,
      ]),
    tests(
      .backend, "MFADeliveryTests",
      [
        "ByteCoding", "ForwardProxies", "Locking", "MFADelivery", "MFADomain", "MFAFixtures", "MFAStore",
        "TestSupport", hummingbird, lifecycle, logging,
      ]),

    // MARK: App, tests

    tests(.app, "OIDCClientTests", ["ByteCoding", "HTTPExchange", "Locking", "OIDCClient", "TestSupport", crypto]),

    // MARK: Tools, tests

    program(.tools, "keyring-probe", in: "KeyringProbe", ["SecretService"]),
    tests(
      .tools, "VaultFormatsTests",
      ["AuthenticatorVault", "ByteCoding", "OneTimePasswords", "TestSupport", "VaultFormats"]),
    tests(.tools, "BearerSettingsTests", ["BearerSettings", "OIDCClient", "TestSupport"]),
    tests(.tools, "SecretServiceTests", ["TestSupport", "keyring-probe"]),
    tests(
      .tools, "BearerToolTests",
      ["BearerTool", "HTTPExchange", "LocalBrowser", "OIDCClient", "TestSupport", "URLSessionExchange", "bearer"]),
    tests(.tools, "QRCodesTests", ["QRCodes", "QREncoding", "TestSupport"]),
    tests(
      .tools, "AuthenticatorToolTests",
      [
        "AuthenticatorTool", "AuthenticatorVault", "ByteCoding", "Commands", "OneTimePasswords", "QRCodes",
        "QREncoding", "TestSupport", "VaultFormats", "authenticator", crypto,
      ]),
    tests(
      .tools, "VaultSyncTests",
      ["AuthenticatorVault", "Locking", "OneTimePasswords", "TestSupport", "VaultSync", crypto]),
    tests(.tools, "AuthenticatorVaultTests", ["AuthenticatorVault", "OneTimePasswords", "TestSupport", crypto]),
  ]
}

package.cxxLanguageStandard = .cxx17

// For work on the backend alone: the gate's tests take minutes to build.
if Context.environment["SALLYPORT_MFA_ONLY"] == "1" {
  package.targets.removeAll { $0.type == .test && !$0.name.hasPrefix("MFA") }
}

/// The targets that the given ones need, and these.
@MainActor func needed(by names: Set<String>) -> Set<String> {
  var (needed, open) = (names, names)
  while let name = open.popFirst() {
    for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
      switch dependency {
      case .byNameItem(let next, _), .targetItem(let next, _):
        if needed.insert(next).inserted { open.insert(next) }
      default: break
      }
    }
  }
  return needed
}

/// What CI builds under a sanitizer. `scripts/test --sanitize core` and `scripts/fuzz --gate` set this.
let coreOnly = Context.environment["SALLYPORT_CORE_ONLY"] == "1"

// The fuzz targets. Under the sanitizer and with coverage they are a library, for which `scripts/fuzz` links a program;
// those of the tools need packages that take long to build, and can be left out. Otherwise they are a test, which checks
// their seeds.
let fuzzTargets = (
  ofGate: [
    "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CBOR", "COpenSSL", "ConfigurationEngine",
    "Cryptography", "Explanations", "ForwardProxies", "GateService", "Inspection", "Settings", "SimulatedDevice",
    "Transport", "TransportEngine",
  ] as [Target.Dependency],
  ofTools: [
    "AuthenticatorVault", "OIDCClient", "OneTimePasswords", "QRCodes", "QREncoding", "VaultFormats", "VaultSync",
  ] as [Target.Dependency], folder: Room.gate.test("Fuzzing")
)
if fuzzing {
  package.targets.append(
    .target(
      name: "Fuzzing", dependencies: fuzzTargets.ofGate + (coreOnly ? [] : fuzzTargets.ofTools),
      path: fuzzTargets.folder, exclude: ["SeedTests.swift"] + (coreOnly ? ["Tools"] : []),
      swiftSettings: ownSettings + (coreOnly ? [.define("GATE_ONLY")] : [])))
} else if !gateOnly {
  package.targets.append(
    .testTarget(
      name: "FuzzingTests", dependencies: fuzzTargets.ofGate + fuzzTargets.ofTools + ["TestSupport"],
      path: fuzzTargets.folder, swiftSettings: testSettings))
}

// What CI builds under a sanitizer, `scripts/test --sanitize core`: the tests of what threads share, and what they need.
let ofCore: Set = [
  "AttestGateTests", "GateServiceTests", "GroupCommitTests", "JSONLogTests", "LockingTests", "PrometheusTests",
  "SQLiteStoreTests", "TransportEngineTests",
]
if coreOnly || fuzzing {
  let core = needed(by: fuzzing ? ofCore.union(["Fuzzing"]) : ofCore)
  package.products = fuzzing ? [.library(name: "Fuzzing", type: .static, targets: ["Fuzzing"])] : []
  package.targets.removeAll { !core.contains($0.name) }
}

// For work on some test targets, for example `SALLYPORT_TESTS=MFACommandTests,MFASettingsTests`.
if let names = Context.environment["SALLYPORT_TESTS"] {
  let kept = needed(by: Set(names.split(separator: ",").map(String.init)))
  package.products = []
  package.targets.removeAll { !kept.contains($0.name) }
}

// For work on one room, for example `SALLYPORT_ROOM=Backend`.
if let name = Context.environment["SALLYPORT_ROOM"] {
  let room = needed(by: Set(package.targets.filter { $0.path?.contains("/\(name)/") == true }.map(\.name)))
  package.products = []
  package.targets.removeAll { !room.contains($0.name) }
}
