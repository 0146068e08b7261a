internal import AttestGate
internal import ConfigurationEngine
internal import Glibc
internal import Settings

/// Checks whether the store can be opened.
struct StoreProbe {
  let settings: GateSettings
  let store: any GateStore

  func run() async -> [ProbeResult] {
    var report = ProbeReport(settings)
    if let folder = settings.stateFolder, access(folder, F_OK) != 0 {
      lookAbove(folder, &report)
      return report.results
    }
    do throws(StoreError) {
      switch try await store.statistics() {
      case .absent: report.pass("store.url", "\(store.place) is empty: the first start creates its tables")
      case .current: report.pass("store.url", "\(store.place) can be opened")
      case .outdated(let count):
        report.pass("store.url", "\(store.place) can be opened; the next start runs \(count) migrations")
      }
      // For a database, the findings would need the connections that only a running gate opens.
      guard case .sqlite = settings.store else { return report.results }
      for finding in try await store.findings(isThorough: false) {
        report.warn("store.url", finding.text, hint: finding.advice)
      }
    } catch {
      report.fail("store.url", "\(store.place) cannot be used: \(error)", hint: error.advice)
    }
    return report.results
  }

  /// Checks that the gate can create the default state folder.
  private func lookAbove(_ folder: String, _ report: inout ProbeReport) {
    var above = folder[...]
    while access(above.isEmpty ? "/" : String(above), F_OK) != 0, let slash = above.lastIndex(of: "/") {
      above = above[..<slash]
    }
    let parent = above.isEmpty ? "/" : String(above)
    if access(parent, W_OK | X_OK) == 0 {
      report.pass("store.url", "\(folder) does not exist: the first start creates it")
    } else {
      report.fail(
        "store.url", "\(folder) does not exist, and \(parent) is not writable: \(String(cString: strerror(errno)))",
        hint: "create the folder for the gate's user, or set store.url to another place")
    }
  }
}
