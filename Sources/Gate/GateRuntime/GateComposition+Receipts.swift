internal import AppAttest
internal import AttestGate
internal import Commands
internal import GateService
internal import Logging
internal import Observability
internal import Settings

extension GateComposition {
  /// Exchanges receipts with Apple; `nil` if no app wants it.
  ///
  /// Receipts of simulated devices never go to Apple: with simulated roots, an app without `endpoint` is left out.
  ///
  /// - Throws: `Failure` if the key of an app cannot be read, or the system has no thread left.
  static func receiptExchange(
    _ settings: GateSettings, _ memory: SharedState
  ) throws(Failure) -> ReceiptExchangeService? {
    var apps: [ExchangeApp] = []
    var places: [(app: AppID, environments: Set<AttestEnvironment>, endpoint: ServerAddress?)] = []
    let isSimulated = settings.appAttest.trust.receiptRootFile != nil
    for setting in settings.appAttest.apps {
      guard let risk = setting.risk, let policy = AppPolicy(setting) else { continue }
      let endpoint = risk.endpoint.flatMap { ServerAddress($0) }
      guard endpoint != nil || !isSimulated else { continue }
      do throws(StartError) {
        let key = DeveloperKey(
          teamID: setting.teamID, keyID: risk.keyID,
          key: try RiskFiles.key(in: risk.keyFile, for: "app_attest.apps: \(setting.bundleID): risk.key_file"))
        apps.append(ExchangeApp(app: policy.appID, key: key, environments: policy.environments))
      } catch {
        throw Failure(error)
      }
      places.append((policy.appID, policy.environments, endpoint))
    }
    guard !apps.isEmpty else { return nil }
    let judge = AnswerJudge(roots: try receiptRoots(of: settings))
    return ReceiptExchangeService(
      apps, storage: riskStorage(settings, memory), transport: try DataServiceClient(places), judge: judge,
      monitor: memory.receipts
    ) { [memory] () async throws(StoreError) in try await memory.latest.bound(knownTo: memory.store) }
  }

  /// The storage for the exchange of receipts, which revokes keys by the policy of their app and reports it.
  private static func riskStorage(_ settings: GateSettings, _ memory: SharedState) -> RiskEnforcement {
    RiskEnforcement(
      memory.store, apps: settings.appAttest.apps.compactMap(AppPolicy.init), report: revocationReport(memory))
  }
}
