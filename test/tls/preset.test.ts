/**
 * A carrier with the preset of an AI voice service, as it looks from its side: TLS, SRTP, codecs,
 * and what it does not see.
 */
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { placeFor, secureNode } from '../support/secure-node.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const own = authority.sign('tollgate', ...loopbackNames)
const service = authority.sign('service', ...loopbackNames)

/** Headers of the networks before us. */
const stripped = {
  'P-Asserted-Identity': `<sip:${paying}@192.0.2.1>`,
  'Remote-Party-ID': `<sip:${paying}@192.0.2.1>;party=calling`,
  Diversion: '<sip:15550009999@192.0.2.1>;reason=unconditional',
  'History-Info': '<sip:15550009999@192.0.2.1>;index=1',
  Identity: 'token;info=<https://192.0.2.1/cert>;alg=ES256',
  'P-Charging-Vector': 'icid-value=1234',
  Geolocation: '<cid:here@192.0.2.1>',
  'Geolocation-Routing': 'yes',
}
const others = { 'User-to-User': '00AB;encoding=hex', 'X-Secret': 'inside' }
const said = Object.entries({ ...stripped, ...others }).map(([name, value]) => `${name}: ${value}`)

/** As a desk phone says it. */
const offer = (port: number): string =>
  sdp('caller', port).replace(/^m=.*\r\n/m, `m=audio ${port} RTP/AVP 8 0 9 96 101\r\n`) +
  ['96 opus/48000/2', '101 telephone-event/8000'].map((line) => `a=rtpmap:${line}\r\n`).join('')

const answer = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=service',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 4600 RTP/SAVP 96 101',
  'a=rtpmap:96 opus/48000/2',
  'a=rtpmap:101 telephone-event/8000',
  'a=sendrecv',
  `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${'A'.repeat(40)}`,
  '',
].join('\r\n')

async function start(carrier: object, environment: Record<string, string> = {}) {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const { peer: gateway, place } = await secureNode(service, authority)
  const nodePlace = placeFor('udp')
  const node = await SipPeer.openPatient(nodePlace)
  onTestFinished(() => node.close())
  const pbx = { host: '127.0.0.1', internal_port: node.port }
  const tollgate = await TollgateProcess.start(
    {
      ...seedFor([]),
      dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes: [pbx] }],
      carriers: [
        {
          name: 'openai',
          direction: 'out',
          preset: 'ai-openai',
          ...carrier,
          gateways: [{ host: 'localhost', port: gateway.port }],
        },
      ],
      outbound_routes: [{ name: 'out', prefix: '', carrier: 'openai' }],
    },
    {
      ...patientInstances,
      SIP_TLS_CERT: own.certFile,
      SIP_TLS_KEY: own.keyFile,
      SIP_TLS_CA: authority.file,
      RTPENGINE: relay.setting,
      ...environment,
    },
  )
  onTestFinished(() => tollgate.stop())
  nodePlace.port = tollgate.sipPort
  place.port = tollgate.tlsPort
  return { tollgate, relay, gateway, node }
}

/**
 * A call with all requests and responses that carry something over; answers with what the service
 * has got.
 */
async function call({ tollgate, relay, gateway, node }: Awaited<ReturnType<typeof start>>) {
  const got: PeerMessage[] = []
  const next = async (wanted: string): Promise<PeerMessage> => {
    const message = await gateway.next(wanted)
    got.push(message)
    return message
  }
  const leg = {
    ...node.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `<sip:${paying}@127.0.0.1:${node.port}>;tag=caller`,
  }
  node.request('INVITE', leg, { headers: said, body: offer(4_000) })
  const invite = await next('INVITE')
  gateway.reply(invite, 200, { tag: 'service', body: answer })
  const ok = await node.next('200 INVITE')
  node.learn(leg, ok)
  node.request('ACK', leg, { headers: said })
  await next('ACK')

  node.request('INVITE', leg, { headers: said, body: offer(4_002) })
  gateway.reply(await next('INVITE'), 200, { body: answer })
  await node.next('200 INVITE')
  node.request('ACK', leg, { headers: said })
  await next('ACK')
  node.request('INFO', leg, { headers: said, contentType: 'text/plain', body: 'hello' })
  gateway.reply(await next('INFO'), 200)
  await node.next('200 INFO')

  const serviceLeg = gateway.calledLeg(invite, 'service')
  gateway.request('INVITE', serviceLeg, { body: answer })
  node.reply(await node.next('INVITE'), 200, { headers: said, body: offer(4_002) })
  await next('200 INVITE')
  gateway.request('ACK', serviceLeg)
  await node.next('ACK')

  node.request('BYE', leg, { headers: said })
  gateway.reply(await next('BYE'), 200)
  await node.next('200 BYE')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
  return { invite, ok, got }
}

/** Those of `headers` that the message has. */
const namesIn = (message: PeerMessage, headers: object): readonly string[] =>
  Object.keys(headers).filter((name) => message.all(name).length > 0)

test('ai-openai: by TLS, SRTP, its codecs, and none of the headers to strip in any message', async () => {
  const { invite, ok, got } = await call(await start({}))
  expect(invite.get('Via')).toMatch(/^SIP\/2\.0\/TLS /)
  // Opus, PCMU, PCMA; the relay offers events at the clock of Opus beside the caller's.
  expect(invite.body).toMatch(/^m=audio \d+ RTP\/SAVP 96 0 8 97 101\r$/m)
  expect(invite.body).toMatch(/^a=rtpmap:97 telephone-event\/48000\r$/m)
  expect(invite.body).toMatch(/^a=crypto:\d+ AES_CM_128_HMAC_SHA1_80 inline:/m)
  expect(invite.get('From')).toContain(paying)
  // A header that it does not strip passes.
  expect(invite.get('User-to-User')).toBe(others['User-to-User'])
  expect(ok.body).toMatch(/^m=audio \d+ RTP\/AVP /m)
  expect(ok.body).not.toContain('crypto')
  expect(got.flatMap((message) => namesIn(message, stripped))).toEqual([])
})

test('a list of its own counts in all messages too, BYE among them', async () => {
  const { got } = await call(
    await start({ strip_headers: Object.keys(others) }, { SIP_PASS_HEADERS: 'X-Secret' }),
  )
  expect(got.map(({ method }) => method)).toContain('BYE')
  expect(got.flatMap((message) => namesIn(message, others))).toEqual([])
  expect(got[0]?.get('P-Asserted-Identity')).toContain(paying)
})
