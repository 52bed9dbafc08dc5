/**
 * Copies of SIP messages for Homer (`HEP_SERVER`): whole calls, by their uuid, and calls that do
 * not mind.
 */
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { hepByTls, hepByUdp, type HepPacket } from '../support/hep-server.ts'
import { placeFor } from '../support/secure-node.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const certificate = authority.sign('homer', ...loopbackNames)

/** A started Tollgate, and a call through it of which the caller gets a bill. */
async function callWith(environment: Record<string, string>) {
  const place = placeFor('udp')
  const node = await SipPeer.openPatient(place)
  onTestFinished(() => node.close())
  node.always('OPTIONS', 200)
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientInstances,
    ...environment,
  })
  onTestFinished(() => tollgate.stop())
  place.port = tollgate.sipPort
  const caller = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => caller.close())
  caller.request('OPTIONS', caller.leg(`sip:127.0.0.1:${tollgate.sipPort}`))
  await caller.next('200 OPTIONS')
  const leg = {
    ...caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `<sip:${paying}@127.0.0.1:${caller.port}>;tag=caller`,
  }
  caller.request('INVITE', leg, { body: sdp('caller') })
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'called', body: sdp('called') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  caller.request('BYE', leg)
  await caller.next('200 BYE')
  node.reply(await node.next('BYE'), 200)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', sip_code: 200 })
  return { tollgate, call }
}

const startOf = ({ payload }: HepPacket): string => /^(?:SIP\/2\.0 )?\S+/.exec(payload)?.[0] ?? ''

test.each(['udp', 'tls'] as const)(
  'by %s both legs of a billed call have its uuid, from the first INVITE to the last answer; what belongs to no call has none',
  async (transport) => {
    const homer = transport === 'udp' ? await hepByUdp() : await hepByTls(certificate)
    const { call, tollgate } = await callWith({
      HEP_SERVER: transport === 'udp' ? `127.0.0.1:${homer.port}` : `tls:127.0.0.1:${homer.port}`,
      HEP_CAPTURE_ID: '2001',
      HEP_PASSWORD: 'hunter2',
      SIP_TLS_CA: authority.file,
    })
    // A message that is sent again counts once.
    const ofCall = () => {
      const packets = homer.packets().filter((each) => each.correlationId === call?.call_uuid)
      return [...new Map(packets.map((packet) => [packet.payload, packet])).values()]
    }
    const isInvite = (start: string): boolean => start === 'INVITE'
    // There is one where the machine took a tenth of a second until the answer.
    const starts = () =>
      ofCall()
        .map(startOf)
        .filter((start) => start !== 'SIP/2.0 100')
    await expect
      .poll(() =>
        starts()
          .filter((start) => !isInvite(start))
          .toSorted(),
      )
      .toEqual(
        [
          ...['SIP/2.0 200', 'ACK', 'BYE', 'SIP/2.0 200'],
          ...['SIP/2.0 200', 'ACK', 'BYE', 'SIP/2.0 200'],
        ].toSorted(),
      )
    // That of the caller has none where the machine took half a second until the call had its uuid.
    expect(starts().filter(isInvite).length).toBeGreaterThan(0)
    const others = homer.packets().filter(({ correlationId }) => correlationId === undefined)
    expect(others.some(({ payload }) => payload.startsWith('OPTIONS '))).toBe(true)
    expect(others.every(({ payload }) => /^CSeq: \d+ (?:OPTIONS|INVITE)\r$/m.test(payload))).toBe(
      true,
    )
    for (const packet of homer.packets())
      expect(packet).toMatchObject({
        ...{ agentId: 2_001, key: 'hunter2', protocol: 17 },
        ...{ source: '7f000001', destination: '7f000001' },
      })
    expect(tollgate.log.join('\n')).not.toMatch(/hunter2|HEP/)
  },
)
