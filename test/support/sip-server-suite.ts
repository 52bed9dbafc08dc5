/** What tests of the suite of drachtio-server share: the program with a file like theirs, an application, a caller, a callee. */
import { onTestFinished } from 'vitest'
import { sdp, type Leg, type PeerMessage, type SipPeer } from './sip-peer.ts'
import { SipServerProgram } from './sip-server-program.ts'
import { bridge, connectByTcp, type Srf, type SrfDialog } from './srf.ts'

const conf = (transports: string, more: string): string => `<drachtio>
  <admin port="9022" secret="cymru">127.0.0.1</admin>
  <sip>
    <contacts><contact>sip:127.0.0.1:0;transport=${transports}</contact></contacts>
    <user-agent-options-auto-respond>JsSIP 3.8.2</user-agent-options-auto-respond>
    <spammers action="reject" tcp-action="discard">
      <header name="User-Agent"><value>sip-cli</value><value>friendly-scanner</value></header>
      <header><value>sipvicious</value></header>
    </spammers>
    <udp-mtu>4096</udp-mtu>
    ${more}
  </sip>
  <cdrs>true</cdrs>
  <logging><console/><sofia-loglevel>9</sofia-loglevel><loglevel>debug</loglevel></logging>
</drachtio>`

export interface Setup {
  readonly transports?: string
  /** More elements of `<sip>`. */
  readonly more?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly secret?: string
}

export async function startServer({
  transports = 'udp,tcp',
  more = '',
  environment = {},
}: Setup = {}) {
  const files = { 'drachtio.conf.xml': conf(transports, more) }
  const words = '-f drachtio.conf.xml --admin 127.0.0.1:0'
  return SipServerProgram.start(words, { files, environment })
}

/** With an application on it. */
export async function start(prepare: (srf: Srf) => void, setup: Setup = {}) {
  const server = await startServer(setup)
  const app = await connectByTcp(server, { secret: setup.secret ?? 'cymru' }, prepare)
  onTestFinished(() => app.close())
  return { server, srf: app.srf }
}

/** The caller's INVITE to `server`. */
export async function call(
  server: SipServerProgram,
  content: { readonly headers?: readonly string[]; readonly body?: string } = {},
  protocol: 'udp' | 'tcp' = 'udp',
): Promise<{ readonly caller: SipPeer; readonly leg: Leg }> {
  const caller = await server.peer(protocol)
  const leg = caller.leg(server.uri('18005551212', protocol))
  caller.request('INVITE', leg, { body: sdp('caller'), ...content })
  return { caller, leg }
}

export async function answered(caller: SipPeer, leg: Leg): Promise<PeerMessage> {
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  leg.routes = ok.all('Record-Route').toReversed()
  caller.request('ACK', leg)
  return ok
}

export async function hangUp(caller: SipPeer, leg: Leg, callee: SipPeer): Promise<void> {
  caller.request('BYE', leg)
  callee.reply(await callee.next('BYE'), 200)
  await caller.next('200 BYE')
}

/** An application that joins each caller to a callee, and the callee. */
export async function startBridge(protocol: 'udp' | 'tcp' = 'udp', setup: Setup = {}) {
  const target = { uri: '' }
  const { server } = await start(
    (srf) => srf.invite((req, res) => void bridge(srf, req, res, target.uri)),
    setup,
  )
  const callee = await server.peer(protocol)
  target.uri = callee.uri
  return { server, callee }
}

/** Answers each call. */
export function takeCalls(srf: Srf, connected: (dialog: SrfDialog) => void): void {
  srf.invite((request, response) => {
    void srf.createUAS(request, response, { localSdp: sdp('app') }).then(connected)
  })
}

/** An INVITE that a `SipPeer` does not write by itself; the leg that it begins. */
export function sendInvite(
  caller: SipPeer,
  uri: string,
  own: {
    readonly from: string
    readonly contact: string
    readonly body?: string
    readonly sentBy?: string
  },
): Leg {
  const leg = caller.leg(uri)
  Object.assign(leg, { from: `${own.from};tag=a`, cseq: 1 })
  const body = own.body ?? sdp('caller')
  caller.send(
    [
      `INVITE ${uri} SIP/2.0`,
      `Via: SIP/2.0/UDP ${own.sentBy ?? `127.0.0.1:${caller.port}`};branch=z9hG4bK${leg.callId}`,
      'Max-Forwards: 70',
      `From: ${leg.from}`,
      `To: <${uri}>`,
      `Call-ID: ${leg.callId}`,
      'CSeq: 1 INVITE',
      `Contact: ${own.contact}`,
      'Content-Type: application/sdp',
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  )
  return leg
}
