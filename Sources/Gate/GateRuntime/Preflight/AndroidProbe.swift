internal import AndroidKeyAttestation
internal import AttestGate
internal import ByteCoding
internal import ConfigurationEngine
internal import Wire
internal import Settings

/// Checks what the policy for Android devices reads: boot keys, simulated roots and the status list.
struct AndroidProbe {
  let settings: GateSettings
  let instant: Timestamp
  let proxies: ProxyVariables

  func run() async -> [ProbeResult] {
    var report = ProbeReport(settings)
    for app in settings.appAttest.androidApps {
      guard let file = app.bootKeysFile, let key = key(ofBootKeys: file) else { continue }
      do throws(StartError) {
        report.pass(key, "\(file) contains \(try AndroidFiles.bootKeys(in: file, for: key).count) boot keys")
      } catch {
        report.fail(error)
      }
    }
    if let file = settings.appAttest.trust.androidRootFile {
      do throws(StartError) {
        let count = try AndroidFiles.roots(in: file).count
        report.pass("app_attest.trust.android_root_file", "\(count) \(count == 1 ? "root" : "roots")")
      } catch {
        report.fail(error)
      }
    }
    if let list = settings.appAttest.statusList { await probe(list, &report) }
    return report.results
  }

  private func key(ofBootKeys file: String) -> String? {
    settings.effective.first { $0.key.hasSuffix(".boot_keys_file") && $0.text == file }?.key
  }

  private func probe(_ list: GateSettings.StatusList, _ report: inout ProbeReport) async {
    let key = "app_attest.android.status_list"
    let source = StatusListSource(list.place, proxies: proxies)
    do throws(StatusListFailure) {
      let reading = try await source.read().list
      let age = instant.since(reading.currentAt)
      if age > list.maximumAge {
        report.warn(
          key, "\(source.text) was last changed at \(reading.currentAt): no Android key is registered",
          hint: "renew it, or set app_attest.android.max_age")
      } else {
        report.pass(key, "\(source.text) contains \(reading.list.count) revoked certificates")
      }
    } catch {
      report.fail(
        key, "\(source.text) cannot be read: \(error.reason)",
        hint: "correct the place; until a list is read no Android key is registered")
    }
  }
}
