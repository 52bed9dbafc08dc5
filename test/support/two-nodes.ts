/**
 * Two instances of one installation on one network, in memory unless a phone comes by TCP: calls
 * begin at `a`, and phones have registered at `b`. Each is call control on its own SIP server; both
 * see the same bindings.
 */
import type { Binding } from '../../engine/registrar/bindings.ts'
import { TransferInstances } from '../../engine/call/transfer/other-instances.ts'
import { PhoneHop } from '../../engine/registrar/hop/phone-hop.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { startCallRig, type CallRig } from './call-rig.ts'
import { sdp, SipPeer, type Leg, type PeerMessage } from './sip-peer.ts'

export const home = { domain: 'acme.example', extension: '102' }

const extensionRecord = (extension: string) => ({
  extensionId: Number(extension),
  extension,
  tenantId: 3,
  customerId: 7,
  domain: home.domain,
  displayName: `Phone ${extension}`,
  isVoicemailEnabled: false,
  secrets: { MD5: '', 'SHA-256': '' },
})

export interface TwoInstances {
  readonly a: CallRig
  readonly b: CallRig
  readonly hopAtB: PhoneHop
  readonly bindings: Binding[]
  /** Tokens that b has refused, by their source. */
  readonly refused: string[]
  /** Whether a hears of b. */
  isAlive: boolean
  /** A phone of the extension behind NAT, whose Contact leads nowhere. */
  phone(): Promise<SipPeer>
  /** The same by TCP. */
  phoneByTcp(): Promise<SipPeer>
  /** Extension 101 at instance a calls 102. */
  dial(offer?: string): Promise<{ caller: SipPeer; leg: Leg }>
  stop(): Promise<void>
}

export async function startTwoInstances({ withTcp = false } = {}): Promise<TwoInstances> {
  const bindings: Binding[] = []
  const refused: string[] = []
  const ports = new Map<string, number>()
  const knownTo = (self: string) => {
    const peer = (name: string) =>
      ({
        sip: { host: '127.0.0.1', port: ports.get(name) ?? 0, protocol: 'udp' },
        addresses: ['127.0.0.1'],
        isAlive: name === self || instances.isAlive,
      }) as const
    const common = {
      self,
      key: Buffer.alloc(32, 1),
      wallNow: () => a.time.wallNow(),
      onRefused: ({ address, port }: Binding['source']) => void refused.push(`${address}:${port}`),
      onToken: () => undefined,
      isRecording: () => false,
      log: () => undefined,
    }
    return { peer, common }
  }
  const hopOf = (self: string): PhoneHop => {
    const { peer, common } = knownTo(self)
    return new PhoneHop({
      ...common,
      peer,
      bindingsOf: () => bindings,
    })
  }
  const othersOf = (self: string): TransferInstances => {
    const { peer: find, common } = knownTo(self)
    const peers = {
      find,
      get alive() {
        return instances.isAlive ? ['a', 'b'] : [self]
      },
    }
    return new TransferInstances({ ...common, peers, onInstanceAt: () => undefined })
  }
  const [hopAtA, hopAtB] = [hopOf('a'), hopOf('b')]
  const a = await startCallRig({
    withTcp,
    otherInstances: othersOf('a'),
    readToken: (request) => hopAtA.read(request),
  })
  const b = await startCallRig({
    withTcp,
    beside: a,
    otherInstances: othersOf('b'),
    readToken: (request) => hopAtB.read(request),
  })
  ports.set('a', a.server.listeners[0]?.port ?? 0).set('b', b.server.listeners[0]?.port ?? 0)
  for (const extension of ['101', '102'])
    a.answers.extensions.set(`${extension}@${home.domain}`, extensionRecord(extension))
  a.answers.caller = { kind: 'extension', extension: extensionRecord('101') }

  const contactOfNext = (): string => `sip:102@10.0.0.${bindings.length + 5}:5060`
  const bind = (peer: SipPeer, port = peer.port): SipPeer => {
    peer.contact = contactOfNext()
    bindings.push({
      contact: peer.contact,
      instance: null,
      regId: null,
      q: 1_000,
      callId: 'r',
      cseq: 1,
      path: [],
      userAgent: '',
      registeredAt: 0,
      expiresAt: Number.MAX_SAFE_INTEGER,
      holder: 'b',
      source: { protocol: peer.protocol, address: '127.0.0.1', port },
    })
    return peer
  }

  const instances: TwoInstances = {
    a,
    b,
    hopAtB,
    bindings,
    refused,
    isAlive: true,
    phone: async () => bind(await b.caller()),
    phoneByTcp: async () => {
      const listener = b.server.listeners.find(({ protocol }) => protocol === 'tcp')
      if (!listener) throw new Error('node b has no listener for TCP')
      const peer = await SipPeer.openPatient(listener)
      b.peers.push(peer)
      const contact = contactOfNext()
      const headers = { Contact: `<${contact}>;expires=600` }
      b.answers.registered = { status: 200, reason: 'OK', headers }
      peer.contact = contact
      peer.request('REGISTER', peer.leg(`sip:${home.domain}`))
      const via = (await peer.next('200 REGISTER')).get('Via')
      return bind(peer, Number(/rport=(\d+)/.exec(via)?.[1]))
    },
    dial: async (offer = sdp('offer')) => {
      const targets = bindings.flatMap((binding) => hopAtA.targetOf(binding, home) ?? [])
      a.answers.contacts.set(`${home.extension}@${home.domain}`, targets)
      const caller = await a.caller()
      const leg = caller.leg(`sip:${home.extension}@${home.domain}`)
      caller.request('INVITE', leg, { body: offer })
      return { caller, leg }
    },
    stop: async () => {
      await a.stop()
      await b.stop()
    },
  }
  return instances
}

/** The route set of the party that was called (RFC 3261 §12.1.1). */
export const recordRoutes = (invite: PeerMessage): readonly string[] =>
  invite.all('Record-Route').map((value) => `Record-Route: ${value}`)

export interface TalkAcross {
  readonly caller: SipPeer
  readonly leg: Leg
  readonly phone: SipPeer
  readonly phoneLeg: Leg
  readonly invite: PeerMessage
}

/** Both talk, and instance a has the call. */
export async function talkAcross(
  instances: TwoInstances,
  phoneOf: Promise<SipPeer> = instances.phone(),
): Promise<TalkAcross> {
  const phone = await phoneOf
  const { caller, leg } = await instances.dial()
  const invite = await phone.next('INVITE')
  phone.reply(invite, 200, { tag: 'b', body: sdp('answer'), headers: recordRoutes(invite) })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await phone.next('ACK')
  await instances.a.until(() => instances.a.calls.list()[0]?.state === 'ACTIVE')
  const phoneLeg = { ...phone.calledLeg(invite, 'b'), routes: invite.all('Record-Route') }
  return { caller, leg, phone, phoneLeg, invite }
}

/** Instance a has the record of the call, and instance b has never heard of one. */
export async function recordAtA({ a, b }: TwoInstances): Promise<CallRecord> {
  const record = await a.record()
  await b.settle()
  if (b.asked.length + b.records.length + b.events.length + b.calls.size > 0)
    throw new Error('node b has authorized, or recorded, what it only passes on')
  return record
}
