/**
 * A network and a clock in memory, on which call control, the SIP server and scripted peers run as
 * on loopback: datagrams arrive in order, one to a turn of the event loop. Nothing sleeps: a wait
 * ends when nothing moves any more.
 */
import type { Machine } from '../../engine/sip-server/index.ts'
import { boundListener } from '../../engine/sip-server/transport/transport.ts'
import type { ManualTime } from './manual-time.ts'
import type { PeerNetwork } from './peer-socket.ts'
import { turnOfEventLoop } from './waiting.ts'

const host = '127.0.0.1'
/** The library lets a few turns go by between what it hears and what it says. */
const turnsUntilQuiet = 10
/** Data that has gathered by then came in one read. */
const turnsOfOneRead = 4
/** By then every transaction of SIP has ended. Milliseconds. */
const sipTimersMs = 70_000

export class VirtualWorld {
  readonly time: ManualTime
  readonly #ports = new Map<number, (text: string, from: number) => void>()
  #lastPort = 40_000
  #underway = 0
  #moves = 0

  constructor(time: ManualTime) {
    this.time = time
  }

  /** The surroundings of the SIP server: UDP only. How busy this machine is does not concern it. */
  get machine(): Machine {
    return this.process().machine
  }

  /** A process that can be killed: from then on it hears, says and does nothing any more. */
  process(): { readonly machine: Machine; kill(): void } {
    let isAlive = true
    const ports: number[] = []
    const machine: Machine = {
      bind: ({ protocol, port: wanted }, callbacks) => {
        if (protocol !== 'udp') return Promise.reject(new Error(`no ${protocol} here`))
        const port = this.#bind((text, from) => {
          const flow = { listener, address: host, port: from, connectionId: 0 }
          callbacks.datagram(Buffer.from(text), flow)
        }, wanted)
        const listener = boundListener('udp', { address: host, port }, undefined)
        ports.push(port)
        return Promise.resolve({
          listener,
          connections: 0,
          send: (text, flow) => {
            if (isAlive) this.#carry(text, port, flow.address === host ? flow.port : 0)
          },
          close: () => undefined,
          stopReading: () => undefined,
          isConnected: () => false,
          stop: () => {
            if (isAlive) this.#ports.delete(port)
            return Promise.resolve()
          },
        })
      },
      schedule: (work, delayMs) =>
        this.time.schedule(() => {
          if (isAlive) work()
        }, delayMs),
      repeat: () => () => undefined,
    }
    const kill = (): void => {
      isAlive = false
      for (const port of ports) this.#ports.delete(port)
    }
    return { machine, kill }
  }

  readonly network: PeerNetwork = {
    open: (listener, receive) => {
      const port = this.#bind((text, from) =>
        receive(text, (answer) => this.#carry(answer, port, from)),
      )
      return Promise.resolve({
        host,
        port,
        send: (text) => this.#carry(text, port, listener.port),
        hangUp: () => undefined,
        close: () => void this.#ports.delete(port),
      })
    },
    whenSilent: (giveUp) => {
      let isOver = false
      const wait = async (): Promise<void> => {
        if (!(await this.until(() => isOver))) giveUp()
      }
      void wait()
      return () => {
        isOver = true
      }
    },
  }

  /** Something has happened after which more may follow. */
  readonly moved = (): void => void this.#moves++

  /** Runs `work` after a moment in which nothing arrives. */
  soon(work: () => void): void {
    this.#underway++
    const perform = async (): Promise<void> => {
      await this.#quiet(turnsOfOneRead, () => false)
      this.#underway--
      this.moved()
      work()
    }
    void perform()
  }

  /** Resolves when everything that is on its way has arrived, with all that follows from it. */
  async settle(): Promise<void> {
    await this.#quiet(turnsUntilQuiet, () => this.#underway > 0)
  }

  /** Lets time pass, from deadline to deadline; what follows from one comes before the next. */
  async advance(ms: number): Promise<void> {
    const { time } = this
    const end = time.now() + ms
    for (;;) {
      await this.settle()
      const next = Math.min(time.next ?? end, end)
      time.advance(next - time.now())
      if (next >= end) return this.settle()
    }
  }

  /** Whether this comes to hold; false when nothing moves any more. Time stands. */
  async until(holds: () => boolean): Promise<boolean> {
    for (let seen = -1, quietTurns = 0; !holds(); quietTurns++) {
      if (quietTurns > turnsUntilQuiet) return false
      await turnOfEventLoop()
      if (this.#moves !== seen || this.#underway > 0) quietTurns = 0
      seen = this.#moves
    }
    return true
  }

  /** The same, while time goes on from deadline to deadline until SIP has given up everything. */
  async untilSipTimersEnd(holds: () => boolean): Promise<boolean> {
    const { time } = this
    const end = time.now() + sipTimersMs
    while (!(await this.until(holds))) {
      if (time.next === undefined || time.next > end) return false
      time.advance(time.next - time.now())
    }
    return true
  }

  /** Resolves when nothing has moved for so many turns. */
  async #quiet(turns: number, isBusy: () => boolean): Promise<void> {
    for (let seen = this.#moves, quiet = 0; quiet < turns; quiet++) {
      await turnOfEventLoop()
      if (this.#moves !== seen || isBusy()) quiet = -1
      seen = this.#moves
    }
  }

  /** Binds a port of its own, or at the one that a process before it had. */
  #bind(receive: (text: string, from: number) => void, wanted = 0): number {
    const port = wanted === 0 ? ++this.#lastPort : wanted
    this.#ports.set(port, receive)
    return port
  }

  /** A text to a port where nothing listens is lost, as by UDP. */
  #carry(text: string, from: number, to: number): void {
    this.#underway++
    setImmediate(() => {
      this.#underway--
      this.moved()
      this.#ports.get(to)?.(text, from)
    })
  }
}
