/**
 * One side of a simulated call: a whole SIP core and an application on it that behaves at random:
 * answers, refuses, stays silent, gives up, asks again, hangs up, always within the protocol.
 */
import { decodeCommand } from '../../engine/sip-server/wire/command.ts'
import { encodeEvent } from '../../engine/sip-server/wire/event.ts'
import { SipCore } from '../../engine/sip-server/core/core.ts'
import type { Listener } from '../../engine/sip-server/flow.ts'
import { defaultLimits } from '../../engine/sip-server/options.ts'
import { defaultTimers } from '../../engine/sip-server/transaction/machine.ts'
import { readEvent, type WireEvent } from '../support/wire-events.ts'
import type { VirtualNetwork } from './virtual-network.ts'
import type { RemoteEnd, StreamHost, VirtualStreams } from './virtual-streams.ts'

const sdp = 'v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=-\r\nt=0 0\r\n'
const longestCallMs = 40_000

/** A name that means one to three addresses, of which some are dead. */
const ownName = 'sbc.example'
const deadAddresses = ['10.0.0.8', '10.0.0.9']

/** A call whose session is watched must end so long after the network has died (RFC 4028). */
const noticedAfterMs = 90_000
/** Long enough for both sides to find out by themselves. */
const forgottenCallMs = 300_000

/** The state of one dialog as the application knows it. */
type View = 'talking' | 'over'

interface Talk {
  /** It made the Call-ID. */
  readonly isCaller: boolean
  readonly isTimed: boolean
}

export class Party implements StreamHost {
  readonly core: SipCore
  readonly address: string
  readonly port = 5060
  readonly listener: Listener
  readonly #network: VirtualNetwork
  readonly #streams: VirtualStreams | undefined
  /** The views by dialog id. */
  readonly views = new Map<string, View>()
  /** Final responses by transaction id of every request that was accepted with OK. */
  readonly finals = new Map<string, number>()
  /** Anything that breaks the protocol towards the application. */
  readonly complaints: string[] = []
  /** Requests in dialogs that came in, by method. */
  readonly requests = new Map<string, number>()
  /** Dialogs whose answer the application has acknowledged. */
  readonly acknowledged = new Set<string>()
  /** Dialogs that were ended because no ACK came. */
  readonly unacknowledged = new Set<string>()
  /** Calls that were refused because no PRACK came. */
  unheard = 0
  /**
   * Dialogs in which media were described before the answer: by this side reliably, to this side.
   */
  readonly described = new Set<string>()
  readonly heardDescription = new Set<string>()
  readonly #awaited = new Map<string, (reply: WireEvent) => void>()
  readonly #onFinal = new Map<string, (status: number, dialogId: string) => void>()
  /** Dialogs in which the application waits for the answer to its re-INVITE. */
  readonly #inviting = new Set<string>()
  /** Answered, and not acknowledged yet. */
  readonly #waitsForAck = new Map<string, Talk>()
  #commands = 0
  #peer: Party | undefined

  /** @param streams undefined: everything goes by UDP, else by TCP */
  constructor(address: string, network: VirtualNetwork, streams?: VirtualStreams) {
    const place = { address, port: 5060, advertisedHost: address, advertisedPort: 5060 }
    this.address = address
    this.listener = { protocol: streams ? 'tcp' : 'udp', ...place }
    this.#network = network
    this.#streams = streams
    streams?.join(this)
    let tokens = 0
    this.core = new SipCore({
      listeners: () => [this.listener],
      timers: { ...defaultTimers, applicationMs: 60_000 },
      limits: defaultLimits,
      minSessionSeconds: 90,
      secret: 's',
      sameSecret: (given, expected) => given === expected,
      seal: (text) => text,
      token: () => `${address.replaceAll('.', '')}t${++tokens}`,
      version: 'v0.9.99',
      log: () => undefined,
    })
    network.join({
      nextDeadline: () => this.core.nextDeadline(),
      handleTimeout: (now) => {
        this.core.handleTimeout(now)
        this.#drain()
      },
    })
    this.core.clientConnected(1, true)
    for (const command of ['authenticate|s|', 'route|invite']) this.#command(command)
  }

  meet(peer: Party): void {
    this.#peer = peer
  }

  received(text: string, from: RemoteEnd): void {
    this.core.receive(text, { listener: this.listener, ...from }, this.#network.now)
    this.#drain()
  }

  sendFailed(reference: string): void {
    this.core.sendFailed(reference, 'refused', this.#network.now)
    this.#drain()
  }

  closed(end: RemoteEnd): void {
    this.core.connectionClosed({ listener: this.listener, ...end }, this.#network.now)
    this.#drain()
  }

  /** Calls the peer, and perhaps gives up before it answers. */
  call(): void {
    const host = this.#chance(0.4) ? ownName : (this.#peer?.address ?? '')
    const to = `sip:b@${host}${this.#streams ? ';transport=tcp' : ''}`
    const isTimed = this.#chance(0.5)
    const lines =
      (isTimed ? 'Supported: timer\r\nSession-Expires: 90\r\n' : '') +
      (this.#chance(0.5) ? 'Supported: 100rel\r\n' : '') +
      (this.#chance(0.2) ? 'Require: 100rel\r\n' : '')
    const invite = `INVITE ${to} SIP/2.0\r\nFrom: <sip:a@localhost>\r\n${lines}\r\n${sdp}`
    this.#ask('', invite, (transactionId) => {
      this.#onFinal.set(transactionId, (status, dialogId) => {
        if (status < 300) this.#answered(dialogId, { isCaller: true, isTimed })
      })
      if (this.#chance(0.3))
        this.#later(5_000, () => {
          // The final response may have come in the meantime: then there is nothing to cancel.
          if (this.finals.get(transactionId) === 0)
            this.#command(`sip|${transactionId}|\r\nCANCEL ${to} SIP/2.0\r\n\r\n`)
        })
    })
  }

  /**
   * One in five neither acknowledges the answer nor does anything else: the stack ends the call.
   */
  #answered(dialogId: string, talk: Talk): void {
    this.views.set(dialogId, 'talking')
    if (this.#chance(0.2)) return
    this.#later(this.#chance(0.8) ? 0 : 3_000, () => {
      if (this.views.get(dialogId) === 'talking') this.acknowledged.add(dialogId)
      this.#acknowledge(dialogId)
      this.#talk(dialogId, talk)
    })
  }

  #acknowledge(dialogId: string): void {
    this.#command(`sip||${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`)
  }

  /** Something in between, and in the end BYE, unless the peer was first, or the stack. */
  #talk(dialogId: string, talk: Talk): void {
    if (this.#chance(0.4)) this.#later(longestCallMs / 2, () => this.#tell(dialogId, 'INFO'))
    if (this.#chance(0.4))
      this.#later(longestCallMs / 2, () => this.#reinvite(dialogId, talk.isCaller, 1))
    const isForgotten = talk.isTimed && this.#chance(0.5)
    if (!isForgotten) return this.#later(longestCallMs, () => this.#tell(dialogId, 'BYE'))
    this.#later(forgottenCallMs / 2, () => this.#reinvite(dialogId, talk.isCaller, 1))
    this.#network.after(forgottenCallMs, () => {
      const isTalking = this.views.get(dialogId) === 'talking'
      if (isTalking && !this.#streams && this.#network.deadForMs > noticedAfterMs)
        this.complaints.push(`the end of ${dialogId} went unnoticed`)
      this.#tell(dialogId, 'BYE')
    })
  }

  /** The same media once more; who meets another request waits as RFC 3261 §14.1 says. */
  #reinvite(dialogId: string, isCaller: boolean, attempt: number): void {
    if (this.views.get(dialogId) !== 'talking') return
    this.#ask(dialogId, `INVITE sip:placeholder SIP/2.0\r\n\r\n${sdp}`, (transactionId) => {
      this.#inviting.add(dialogId)
      this.#onFinal.set(transactionId, (status) => {
        this.#inviting.delete(dialogId)
        if (status < 300) return this.#acknowledge(dialogId)
        if (status !== 491 && status !== 500) return undefined
        if (attempt === 20) this.complaints.push(`20 re-INVITEs met others in ${dialogId}`)
        const [least, range] = isCaller ? [2_100, 1_900] : [0, 2_000]
        const waitMs = status === 491 ? least + this.#network.random() * range : 5_000
        const again = (): void => this.#reinvite(dialogId, isCaller, attempt + 1)
        return attempt < 20 ? this.#network.after(waitMs, again) : undefined
      })
    })
  }

  #tell(dialogId: string, method: 'INFO' | 'BYE'): void {
    if (this.views.get(dialogId) !== 'talking') return
    if (method === 'BYE') this.views.set(dialogId, 'over')
    this.#ask(dialogId, `${method} sip:placeholder SIP/2.0\r\n\r\n`, () => undefined)
  }

  #ask(dialogId: string, message: string, accepted: (transactionId: string) => void): void {
    this.#command(`sip||${dialogId}\r\n${message}`, ({ transactionId }) => {
      this.finals.set(transactionId, 0)
      accepted(transactionId)
    })
  }

  /** `accepted` gets the reply, if it is OK. */
  #command(payload: string, accepted?: (reply: WireEvent) => void): void {
    const id = `c${++this.#commands}`
    if (accepted) this.#awaited.set(id, accepted)
    this.core.command(1, decodeCommand(`${id}|${payload}`), this.#network.now)
    this.#drain()
  }

  #drain(): void {
    for (let output = this.core.nextOutput(); output; output = this.core.nextOutput()) {
      if (output.kind === 'deliver') this.#hear(encodeEvent(output.event, 'e'))
      else if (output.kind === 'send') this.#send(output.text, output.flow, output.reference)
      else if (output.kind === 'resolve') this.#lookUp(output.reference)
      else this.complaints.push(`unexpected ${output.kind}`)
    }
  }

  #send(text: string, to: RemoteEnd, reference: string): void {
    const from = { address: this.address, port: this.port, connectionId: 0 }
    const peer = this.#peer
    if (this.#streams) this.#streams.send(this, to, text, reference)
    else if (peer?.address === to.address) this.#network.carry(() => peer.received(text, from))
  }

  /** Sometimes there is no answer, and our server is not always among the first addresses. */
  #lookUp(reference: string): void {
    const { random } = this.#network
    const addresses = [this.#peer?.address ?? '', ...deadAddresses].filter(() => random() < 0.7)
    const { protocol } = this.listener
    const targets = addresses
      .toSorted(() => random() - 0.5)
      .map((address) => ({ protocol, address, port: this.port }))
    this.#later(3_000, () => {
      this.core.resolved(reference, targets, this.#network.now)
      this.#drain()
    })
  }

  #hear(payload: string): void {
    const event = readEvent(payload)
    if (event.kind === 'response') return this.#hearReply(event)
    const { transactionId, dialogId, sip } = event
    if (sip.startsWith('SIP/2.0')) this.#hearResponse(sip, transactionId, dialogId)
    else this.#hearRequest(sip, transactionId, dialogId)
  }

  #hearReply(reply: WireEvent): void {
    const accepted = this.#awaited.get(reply.commandId)
    this.#awaited.delete(reply.commandId)
    if (reply.verdict === 'OK') accepted?.(reply)
  }

  #hearResponse(text: string, transactionId: string, dialogId: string): void {
    const status = Number(text.slice(8, 11))
    const finals = this.finals.get(transactionId)
    if (finals === undefined) this.complaints.push(`a response to nothing: ${status}`)
    const rseq = /\r\nRSeq: (\d+)/.exec(text)?.[1]
    if (rseq !== undefined) {
      this.heardDescription.add(dialogId)
      const prack = `PRACK sip:placeholder SIP/2.0\r\nRAck: ${rseq} 1 INVITE\r\n\r\n`
      this.#ask(dialogId, prack, () => undefined)
    }
    if (status < 200) return
    this.finals.set(transactionId, (finals ?? 0) + 1)
    this.#onFinal.get(transactionId)?.(status, dialogId)
    this.#onFinal.delete(transactionId)
  }

  #hearRequest(text: string, transactionId: string, dialogId: string): void {
    const method = text.slice(0, text.indexOf(' '))
    this.requests.set(method, (this.requests.get(method) ?? 0) + 1)
    if (method === 'BYE') {
      if (this.views.get(dialogId) === undefined) this.complaints.push(`a BYE for ${dialogId}`)
      this.views.set(dialogId, 'over')
      if (text.includes('ACK timeout')) this.unacknowledged.add(dialogId)
    }
    if (text.includes('PRACK timeout')) this.unheard += 1
    if (transactionId === 'unsolicited' || method === 'CANCEL') return
    // RFC 3261 §14.2: the stack answers 491.
    if (method === 'INVITE' && this.#inviting.has(dialogId))
      this.complaints.push(`two offers at the same time in ${dialogId}`)
    if (method === 'ACK') return this.#hearAck(dialogId)
    if (method === 'INVITE' && dialogId === '') return this.#ring(transactionId, text)
    if (method === 'INVITE')
      return this.#later(500, () => this.#respond(transactionId, 200, '', sdp))
    const answer = (): void => this.#respond(transactionId, 200)
    if (method !== 'BYE' && this.#chance(0.3))
      this.#later(300, () => this.#respond(transactionId, 183))
    if (this.#chance(0.9)) this.#network.after(300 + this.#network.random() * 200, answer)
  }

  /** §15: a callee does not hang up before the ACK. */
  #hearAck(dialogId: string): void {
    const talk = this.#waitsForAck.get(dialogId)
    this.#waitsForAck.delete(dialogId)
    if (talk) this.#talk(dialogId, talk)
  }

  /** Its ringing is said reliably, where the caller takes that. */
  #ring(transactionId: string, invite: string): void {
    const isTimed = invite.includes('\r\nSession-Expires:')
    const lines = isTimed ? 'Session-Expires: 90\r\n' : ''
    if (invite.includes('100rel') && this.#chance(0.6))
      this.#later(1_000, () => this.#respond(transactionId, 183, 'Require: 100rel\r\n', sdp))
    else if (this.#chance(0.7)) this.#later(1_000, () => this.#respond(transactionId, 180))
    const fate = this.#network.random()
    if (fate < 0.65) this.#later(8_000, () => this.#respond(transactionId, 200, lines, sdp))
    else if (fate < 0.9) this.#later(8_000, () => this.#respond(transactionId, 486))
  }

  #respond(transactionId: string, status: number, lines = '', body = ''): void {
    const answer = `sip|${transactionId}|\r\nSIP/2.0 ${status} X\r\n${lines}\r\n${body}`
    this.#command(answer, ({ dialogId }) => {
      // The dialog of an INVITE begins with its answer; the ACK may be here already.
      if (body === '' || this.views.has(dialogId)) return
      if (status === 183) this.described.add(dialogId)
      else {
        this.views.set(dialogId, 'talking')
        const talk = { isCaller: false, isTimed: lines !== '' }
        this.#waitsForAck.set(dialogId, talk)
      }
    })
  }

  #later(maxMs: number, work: () => void): void {
    this.#network.after(this.#network.random() * maxMs, work)
  }

  #chance(part: number): boolean {
    return this.#network.random() < part
  }
}
