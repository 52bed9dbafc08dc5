/**
 * The SIP servers of the operator's drachtio-srf application: the one that is asked about new
 * calls, and those of earlier workers, which still have some.
 */
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import { headerNamed } from '../../../schema/sip/index.ts'
import { APPLICATION_CALL, APPLICATION_SECRET } from './private-headers.ts'

/** The server of one run of the file: of one worker. */
export interface ApplicationRun {
  /** Unique in this process. */
  readonly run: number
  readonly protocol: 'udp' | 'tcp'
  /** Loopback. */
  readonly host: string
  readonly port: number
  /** Known to this process and to the worker alone. */
  readonly secret: string
}

/** Where a call is offered to the application. */
export interface ApplicationCandidate {
  readonly kind: 'application'
  /** The destination in records: no address, as it is inside. */
  readonly uri: 'application'
  readonly run: number
  readonly nextHop: string
  readonly secret: string
  /** Without an answer of it the call is refused; absent: it goes on. */
  readonly mustAnswer?: true
}

export interface ApplicationRunsDeps {
  /** The calls that the application of this run has, or is asked about, go on without it. */
  readonly onEnded: (run: number) => void
  /** `HOOKS_FALLBACK=refuse`: no call goes past an application that should be there. */
  readonly mustAnswer?: boolean
}

/** The worker's request: of which of its calls, if of any. */
export interface ApplicationRequest {
  readonly callUuid: string | undefined
}

export class ApplicationRuns {
  readonly #deps: ApplicationRunsDeps
  readonly #runs = new Map<number, ApplicationRun>()
  #current: number | undefined
  #isExpected = false

  constructor(deps: ApplicationRunsDeps) {
    this.#deps = deps
  }

  /** Whether the file has an application, also while no thread serves it. */
  expect(isExpected: boolean): void {
    this.#isExpected = isExpected
  }

  /** An application that has to be asked is not there: calls are refused. */
  get isMissed(): boolean {
    return this.#deps.mustAnswer === true && this.#isExpected && this.#current === undefined
  }

  /** A worker's application takes INVITEs: it is asked about new calls from now on. */
  started(run: ApplicationRun): void {
    this.#runs.set(run.run, run)
    this.#current = run.run
  }

  /** No new call is offered to this run; those that it has go on. */
  retire(run: number): void {
    if (this.#current === run) this.#current = undefined
  }

  /** The worker is gone. */
  ended(run: number): void {
    this.retire(run)
    if (this.#runs.delete(run)) this.#deps.onEnded(run)
  }

  /** Undefined: there is no application, and a call costs nothing more. */
  candidate(): ApplicationCandidate | undefined {
    const current = this.#current === undefined ? undefined : this.#runs.get(this.#current)
    if (current === undefined) return undefined
    const { run, protocol, host, port, secret } = current
    const place = host.includes(':') ? `[${host}]` : host
    const nextHop = `sip:${place}:${port};transport=${protocol}`
    const asked = { kind: 'application', uri: 'application', run, nextHop, secret } as const
    return this.#deps.mustAnswer === true ? { ...asked, mustAnswer: true } : asked
  }

  /** Whether an application's server sends from there. By TCP any port of its host may be its. */
  isAt(address: string, port: number): boolean {
    return this.#at(address, port) !== undefined
  }

  /** The run whose server sends from there. */
  runAt(address: string, port: number): number | undefined {
    return this.#at(address, port)?.run
  }

  /**
   * Whether a request outside dialogs is of the application. `refused`: it comes from there without
   * the secret. Undefined: it is somebody else's.
   */
  read({
    sourceAddress,
    sourcePort,
    headers,
  }: Pick<ReceivedRequest, 'sourceAddress' | 'sourcePort' | 'headers'>):
    ApplicationRequest | 'refused' | undefined {
    if (this.#runs.size === 0) return undefined
    const given = headerNamed(headers, secretName)
    const sender = this.#at(sourceAddress, sourcePort)
    if (sender === undefined) return undefined
    if (given === sender.secret) return { callUuid: headerNamed(headers, callName) }
    // By TCP another program of this machine may have sent it.
    return sender.protocol === 'udp' ? 'refused' : undefined
  }

  #at(address: string, port: number): ApplicationRun | undefined {
    for (const run of this.#runs.values())
      if (run.host === address && (run.port === port || run.protocol === 'tcp')) return run
    return undefined
  }
}

const secretName = APPLICATION_SECRET.toLowerCase()
const callName = APPLICATION_CALL.toLowerCase()
