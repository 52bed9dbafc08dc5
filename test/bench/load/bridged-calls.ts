/**
 * Bridged calls through a `SipCore` without sockets, clock or call control: the messages that both
 * parties and call control send in one call, seven in and seven out, over UDP.
 */
import { randomBytes } from 'node:crypto'
import type { AppMessage, Command } from '../../../engine/sip-server/application.ts'
import { SipCore } from '../../../engine/sip-server/core/core.ts'
import type { Flow, Listener } from '../../../engine/sip-server/flow.ts'
import { composeRequest, composeResponse } from '../../../engine/sip-server/message/message.ts'
import { sameSecret, sealWith } from '../../../engine/sip-server/options.ts'
import { randomTokens } from '../../../engine/sip-server/machine.ts'
import { defaultTimers } from '../../../engine/sip-server/transaction/machine.ts'

const listener: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 5060,
  advertisedHost: '127.0.0.1',
  advertisedPort: 5060,
}

const sdp = (name: string): string =>
  `v=0\r\no=${name} 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n` +
  'm=audio 6012 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n'
const type = 'Content-Type: application/sdp\r\n'
const length = (body: string): string => `Content-Length: ${body.length}\r\n\r\n${body}`
const callerSdp = length(sdp('caller'))
const nodeSdp = length(sdp('node'))
const noBody = length('')

export class BridgedCalls {
  readonly core: SipCore
  /** Milliseconds; moves with each call as the rate says. */
  now = 1_700_000_000_000
  readonly #msPerCall: number
  #calls = 0
  #commands = 0
  #sent = ''
  /** Of the request that was delivered last. */
  #transactionId = ''

  constructor(callsPerSecond: number) {
    this.#msPerCall = 1_000 / callsPerSecond
    this.core = new SipCore({
      listeners: () => [listener],
      timers: defaultTimers,
      minSessionSeconds: 90,
      limits: { maxUnanswered: 1_000_000, maxDialogs: 1_000_000 },
      secret: 's',
      sameSecret,
      seal: sealWith(new Uint8Array(32)),
      token: randomTokens((size) => randomBytes(size)),
      version: 'v0.9.99',
      log: () => undefined,
    })
    this.core.clientConnected(1, true)
    this.#command({ kind: 'authenticate', secret: 's', tags: [] })
    this.#command({ kind: 'route', verb: 'invite' })
  }

  /** One call that is hung up as soon as it is answered. */
  place(): void {
    this.#hangUp(this.#connect())
    this.advance(this.#msPerCall)
  }

  /** One call that goes on. */
  placeAndStay(): void {
    this.#connect()
    this.advance(this.#msPerCall)
  }

  advance(ms: number): void {
    this.now += ms
    const deadline = this.core.nextDeadline()
    if (deadline === undefined || deadline > this.now) return
    this.core.handleTimeout(this.now)
    this.#drain()
  }

  #connect(): { readonly a: Leg; readonly bDialog: string } {
    const a = leg(++this.#calls)
    this.#receive(
      `INVITE sip:18005551212@127.0.0.1:5060 SIP/2.0\r\n${a.via(0)}Max-Forwards: 70\r\n${a.from}` +
        `${a.to}\r\n${a.callId}CSeq: 1 INVITE\r\n${a.contact}${type}${callerSdp}`,
    )
    const caller = this.#transactionId
    this.#send(
      '',
      composeRequest(
        'INVITE',
        'sip:18005551212@127.0.0.1:39226;transport=udp',
        {
          'Content-Type': 'application/sdp',
          'Max-Forwards': '69',
          From: '<sip:15550001111@localhost>',
          'X-Call-UUID': '4ccabc7f-4cc1-49bf-a72f-2f189c011ac5',
          To: '<sip:18005551212@127.0.0.1:39226>',
        },
        sdp('caller'),
      ),
    )
    const invite = this.#sent
    const bDialog = `${line(invite, 'Call-ID: ')};from-tag=${after(line(invite, 'From: '), 'tag=')}`
    this.#receive(responseTo(invite, '180 Ringing', noBody))
    this.#respond(caller, composeResponse(180, '', {}))
    const tag = after(line(this.#sent, 'To: '), 'tag=')
    this.#receive(responseTo(invite, '200 OK', type + nodeSdp))
    this.#send(bDialog, composeRequest('ACK', placeholder, {}))
    const answer = composeResponse(200, '', { 'Content-Type': 'application/sdp' }, sdp('node'))
    this.#respond(caller, answer)
    this.#receive(a.inDialog('ACK', 1, 4, tag))
    return { a: { ...a, tag }, bDialog }
  }

  #hangUp({ a, bDialog }: { readonly a: Leg; readonly bDialog: string }): void {
    this.#receive(a.inDialog('BYE', 2, 5, a.tag))
    this.#respond(this.#transactionId, composeResponse(200, '', {}))
    this.#send(bDialog, composeRequest('BYE', placeholder, {}))
    this.#receive(responseTo(this.#sent, '200 OK', noBody))
  }

  #receive(text: string): void {
    // As from a socket: one flat string, and a flow of its own.
    const flow: Flow = { listener, address: '127.0.0.1', port: 37_623, connectionId: 0 }
    this.core.receive(Buffer.from(text, 'latin1').toString('utf8'), flow, this.now)
    this.#drain()
  }

  #send(dialogId: string, message: AppMessage): void {
    this.#command({ kind: 'sip', transactionId: '', dialogId, routeUrl: '', message })
  }

  #respond(transactionId: string, message: AppMessage): void {
    this.#command({ kind: 'sip', transactionId, dialogId: '', routeUrl: '', message })
  }

  #command(command: Command): void {
    this.core.command(1, { id: `i${++this.#commands}`, command }, this.now)
    this.#drain()
  }

  #drain(): void {
    for (let output = this.core.nextOutput(); output; output = this.core.nextOutput()) {
      // What a socket would do first: read the text from end to end.
      if (output.kind === 'send') this.#sent = flat(output.text)
      else if (output.kind === 'deliver' && output.event.kind === 'request')
        this.#transactionId = output.event.transactionId
    }
  }
}

const placeholder = 'sip:placeholder'

const flat = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

type Leg = ReturnType<typeof leg>

function leg(call: number) {
  const from = `From: <sip:15550001111@127.0.0.1:37623>;tag=18678c${call}\r\n`
  const to = 'To: <sip:18005551212@127.0.0.1:5060>'
  const callId = `Call-ID: ${call}-18678@127.0.0.1\r\n`
  const contact = 'Contact: <sip:15550001111@127.0.0.1:37623;transport=UDP>\r\n'
  const via = (step: number): string =>
    `Via: SIP/2.0/UDP 127.0.0.1:37623;branch=z9hG4bK-18678-${call}-${step}\r\n`
  return {
    from,
    to,
    callId,
    contact,
    via,
    tag: '',
    inDialog: (method: string, cseq: number, step: number, tag: string): string =>
      `${method} sip:18005551212@127.0.0.1:5060 SIP/2.0\r\n${via(step)}Max-Forwards: 70\r\n${from}` +
      `${to};tag=${tag}\r\n${callId}CSeq: ${cseq} ${method}\r\n${contact}${noBody}`,
  }
}

function responseTo(request: string, status: string, rest: string): string {
  const to = line(request, 'To: ')
  const tagged = to.includes('tag=') ? to : `${to};tag=18654n1`
  return (
    `SIP/2.0 ${status}\r\nVia: ${line(request, 'Via: ')}\r\nFrom: ${line(request, 'From: ')}\r\n` +
    `To: ${tagged}\r\nCall-ID: ${line(request, 'Call-ID: ')}\r\nCSeq: ${line(request, 'CSeq: ')}\r\n` +
    `Contact: <sip:node@127.0.0.1:39226;transport=UDP>\r\n${rest}`
  )
}

function line(text: string, name: string): string {
  const start = text.indexOf(`\r\n${name}`) + 2 + name.length
  return text.slice(start, text.indexOf('\r\n', start))
}

const after = (text: string, mark: string): string => text.slice(text.indexOf(mark) + mark.length)
