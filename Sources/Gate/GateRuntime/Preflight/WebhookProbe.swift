internal import ConfigurationEngine
internal import Glibc
internal import Settings

/// Checks whether the queue of webhooks can be made or used.
struct WebhookProbe {
  let settings: GateSettings

  func run() -> [ProbeResult] {
    guard let webhooks = settings.webhooks else { return [] }
    var report = ProbeReport(settings)
    let folder = webhooks.folder
    let parent = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? "."
    if access(folder, F_OK) == 0 {
      // A file is no folder: its name with a slash leads nowhere.
      if access(folder + "/.", R_OK | W_OK | X_OK) == 0 {
        report.pass("webhooks.folder", "\(folder) can be used")
      } else {
        fail(folder, &report)
      }
    } else if parent == settings.stateFolder || access(parent.isEmpty ? "/" : parent, W_OK | X_OK) == 0 {
      report.pass("webhooks.folder", "\(folder) does not exist: the first start creates it")
    } else {
      fail(parent, &report)
    }
    return report.results
  }

  private func fail(_ place: String, _ report: inout ProbeReport) {
    report.fail(
      "webhooks.folder", "\(place): \(String(cString: strerror(errno)))",
      hint: "name a folder that this gate may write to, in one that exists")
  }
}
