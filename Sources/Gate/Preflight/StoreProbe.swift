internal import AttestGate
internal import Glibc
internal import Settings

/// Whether the store could be opened.
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
      switch try await store.survey() {
      case .absent: report.pass("store.url", "\(store.place) is empty: the first start makes its tables")
      case .current: report.pass("store.url", "\(store.place) can be opened")
      case .outdated(let count):
        report.pass("store.url", "\(store.place) can be opened; the next start makes \(count) migrations")
      }
      // Of a database, these would need a connection as the gate's own.
      guard case .sqlite = settings.store else { return report.results }
      for finding in try await store.findings(isThorough: false) {
        report.warn("store.url", finding.text, hint: finding.advice)
      }
    } catch {
      report.fail("store.url", "\(store.place) cannot be used: \(error)", hint: error.advice)
    }
    return report.results
  }

  /// The gate creates the state folder if none is configured, so it must be able to.
  private func lookAbove(_ folder: String, _ report: inout ProbeReport) {
    var above = folder[...]
    while access(above.isEmpty ? "/" : String(above), F_OK) != 0, let slash = above.lastIndex(of: "/") {
      above = above[..<slash]
    }
    let parent = above.isEmpty ? "/" : String(above)
    if access(parent, W_OK | X_OK) == 0 {
      report.pass("store.url", "\(folder) is not there yet: the first start makes it")
    } else {
      report.fail(
        "store.url", "\(folder) is not there, and \(parent) cannot be written: \(String(cString: strerror(errno)))",
        hint: "make the folder for the user of the gate, or name another place with store.url")
    }
  }
}
