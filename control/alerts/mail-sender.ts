/**
 * Sends e-mail by SMTP. The connection goes to a checked address, is as encrypted as the channel
 * says, and has a deadline for all of it.
 */
import { connect, isIP, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import type { Schedule } from '../../schema/clock.ts'
import { guardedLookup, isTargetAllowed, type Resolve } from '../../schema/net/http-target.ts'
import type { ChannelInForce, MailServer } from './alert-rule-set.ts'
import type { SendOutcome } from './send-outcome.ts'

export interface MailSenderDeps {
  readonly resolve: Resolve
  /** Allows mail servers of channels in private networks. */
  readonly allowPrivate: boolean
  readonly schedule: Schedule
  /** The mail server of the installation, which may be anywhere; undefined: there is none. */
  readonly installation: { readonly server: MailServer; readonly sender: string } | undefined
}

export interface Mail {
  /** Its Message-ID is the same in each attempt: receivers know a repeated one by it. */
  readonly key: string
  readonly subject: string
  readonly text: string
}

/** Time for the whole exchange, with DNS. */
const DEADLINE_MS = 30_000
const STEP_MS = 10_000
const MAX_REASON = 300

export class MailSender {
  readonly #deps: MailSenderDeps

  constructor(deps: MailSenderDeps) {
    this.#deps = deps
  }

  async send(channel: ChannelInForce, mail: Mail): Promise<SendOutcome> {
    const { installation, schedule } = this.#deps
    const own = channel.mailServer
    const server = own ?? installation?.server
    // A tenant cannot send as anybody else by the mail server of the installation.
    const isFree = own !== undefined || channel.tenantId === null
    const sender = (isFree ? channel.sender : null) ?? (own ? undefined : installation?.sender)
    if (server === undefined || sender === undefined)
      return failure('there is no mail server: give the channel one, or set SMTP_URL')
    if (server.user !== undefined && server.password === undefined)
      return failure('the password of the mail server is missing: enter it again')
    let socket: Socket | undefined
    const cancel = schedule(
      () => socket?.destroy(new Error(`no end within ${DEADLINE_MS / 1_000} s`)),
      DEADLINE_MS,
    )
    try {
      socket = this.#connect(server, own === undefined)
      await connected(socket)
      const { rejected, rejectedErrors } = await transportOn(socket, server).sendMail({
        from: { name: 'Tollgate', address: sender },
        to: [...channel.recipients],
        subject: mail.subject,
        text: mail.text,
        messageId: `<${mail.key}@${sender.slice(sender.lastIndexOf('@') + 1)}>`,
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      // The others have it: sent again, it would be told twice to them.
      if (rejected.length === 0) return { kind: 'sent' }
      const why = isFree ? `: ${rejectedErrors?.[0]?.response ?? 'no reason'}` : ''
      const who = rejected.map(String).join(', ')
      return { kind: 'sent', refused: `not to ${who}${why}`.slice(0, MAX_REASON) }
    } catch (error) {
      // Tenants are not told where the mail server inside is, and what it says.
      return failureOf(error, isFree)
    } finally {
      cancel()
      socket?.destroy()
    }
  }

  #connect({ host, port }: MailServer, isTrusted: boolean): Socket {
    const { resolve, allowPrivate } = this.#deps
    const rules = { resolve, allowPrivate: allowPrivate || isTrusted }
    // Literal addresses are never looked up.
    if (isIP(host) !== 0 && !isTargetAllowed(host, rules))
      throw new Error('the mail server has a private address')
    return connect({ host, port, lookup: guardedLookup(rules) })
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the connection was closed')))
  })
}

const transportOn = (socket: Socket, { host, port, tls, user, password }: MailServer) =>
  createTransport({
    connection: socket,
    host,
    port,
    secure: tls === 'tls',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    tls: { minVersion: 'TLSv1.2', ...(isIP(host) === 0 && { servername: host }) },
    ...(user !== undefined && { auth: { user, pass: password ?? '' } }),
    connectionTimeout: STEP_MS,
    greetingTimeout: STEP_MS,
    socketTimeout: 2 * STEP_MS,
  })

const failure = (reason: string, isFinal = false): SendOutcome => ({
  kind: 'failed',
  reason: reason.slice(0, MAX_REASON),
  isFinal,
  retryAfterMs: 0,
})

/** A server that takes no such recipient or text (RFC 5321 §4.2.1) will not take it later. */
function failureOf(error: unknown, isShown: boolean): SendOutcome {
  const said = error instanceof Error ? error.message || error.name : String(error)
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown }
  const isRefused = code === 'EENVELOPE' || code === 'EMESSAGE'
  const isPermanent = typeof responseCode === 'number' && responseCode >= 550
  const status = typeof responseCode === 'number' ? ` (it answered ${responseCode})` : ''
  const reason = isShown ? said : `the mail server of the installation did not take it${status}`
  return failure(reason, isRefused && isPermanent)
}
