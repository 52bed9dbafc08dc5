/** Kamailio's sipcapture, the collector of a Homer, reads what Tollgate sends. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Kamailio } from '../support/kamailio.ts'
import { SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const collector = (port: number, folder: string): string => {
  mkdirSync(join(folder, 'tables'))
  return `#!KAMAILIO
debug=1
log_stderror=yes
children=1
listen=udp:127.0.0.1:${port}
loadmodule "pv.so"
loadmodule "xlog.so"
loadmodule "db_text.so"
loadmodule "sipcapture.so"
modparam("sipcapture", "db_url", "text://${folder}/tables")
modparam("sipcapture", "capture_on", 1)
modparam("sipcapture", "hep_capture_on", 1)
request_route { xlog("L_ALERT", "copy of $rm from $si:$sp, $ci\\n"); exit; }
onreply_route { xlog("L_ALERT", "copy of $rs from $si:$sp, $ci\\n"); exit; }`
}

test('it finds request and answer, with their sources', async () => {
  const homer = await Kamailio.start({ configuration: collector })
  onTestFinished(() => homer.stop())
  const tollgate = await TollgateProcess.start({}, { HEP_SERVER: `127.0.0.1:${homer.port}` })
  onTestFinished(() => tollgate.stop())
  const peer = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => peer.close())
  const leg = peer.leg(`sip:127.0.0.1:${tollgate.sipPort}`)
  peer.request('OPTIONS', leg)
  await peer.next('200 OPTIONS')
  const copies = (): string[] => homer.log.flatMap((line) => /copy of .*/.exec(line)?.[0] ?? [])
  await expect
    .poll(copies)
    .toEqual([
      `copy of OPTIONS from 127.0.0.1:${peer.port}, ${leg.callId}`,
      `copy of 200 from 127.0.0.1:${tollgate.sipPort}, ${leg.callId}`,
    ])
})
