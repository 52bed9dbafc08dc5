/** The whole engine without its process, on real sockets, between scripted peers. */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { Ocs } from '../../engine/charging/ocs.ts'
import { seedFile } from '../../engine/commands/seed.ts'
import { readConfig } from '../../engine/config.ts'
import { createEngine } from '../../engine/create-engine.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { Rounds } from '../../schema/rounds.ts'
import { emptyStore } from './empty-store.ts'
import { freePort } from './free-port.ts'
import { journalOf } from './journals.ts'
import { type PeerMessage, sdp, SipPeer } from './sip-peer.ts'
import { patientInstances } from './waiting.ts'

const address = '127.0.0.1'

/** `seedFor` gets the ports of the peers, which are opened before the engine. */
export async function startEngine<Name extends string>(
  names: readonly Name[],
  seedFor: (ports: Readonly<Record<Name, number>>) => object,
) {
  const port = await freePort()
  const advertised = { advertisedHost: address, advertisedPort: port }
  const listener = { protocol: 'udp', address, port, ...advertised } as const
  const opened: [Name, SipPeer][] = []
  for (const name of names) opened.push([name, await SipPeer.openPatient(listener)])
  const peers = Object.fromEntries(opened) as Record<Name, SipPeer>
  for (const [, peer] of opened) peer.always('OPTIONS', 200, { tag: 'probed' })
  const ports = Object.fromEntries(opened.map(([name, peer]) => [name, peer.port]))
  const store = emptyStore()
  await seedFile(store, JSON.stringify(seedFor(ports as Record<Name, number>)), Date.now())
  const schedule = (work: () => void, delayMs: number): (() => void) => {
    const stop = new AbortController()
    void pause(delayMs, undefined, { signal: stop.signal }).then(work, () => undefined)
    return () => stop.abort()
  }
  const problems: unknown[] = []
  const log = (level: string, message: string, fields?: object): void => {
    if (level === 'error') problems.push({ message, ...fields })
  }
  const clocks = { now: Date.now, wallNow: Date.now, schedule }
  const journal = journalOf(store, schedule)
  const { every } = new Rounds({ schedule, steadyNow: Date.now })
  const ocs = new Ocs({ store, journal, unknownCaller: 'allow', log, every, ...clocks })
  const records: CallRecord[] = []
  const charging = new Proxy(ocs, {
    get: (of, name) => {
      if (name === 'report')
        return (record: CallRecord, safe?: () => void) => {
          records.push(record)
          return of.report(record, safe)
        }
      const value: unknown = Reflect.get(of, name, of)
      return typeof value === 'function' ? (value.bind(of) as unknown) : value
    },
  })
  const engine = createEngine({
    instance: { name: 'one' },
    config: readConfig({
      SIP_LISTEN: `udp/${address}:${port}`,
      ...patientInstances,
      PROBE_INTERVAL_MS: '600000',
    }),
    store,
    ...clocks,
    log,
    randomBytes,
    newUuid: randomUUID,
    databaseId: 'sockets',
    whyClosed: () => undefined,
    random: () => 0.5,
    foresee: (asked) => ocs.foresee(asked),
    charging,
  })
  await ocs.reload()
  await engine.load()
  await engine.start()
  onTestFinished(async () => {
    await engine.stop()
    await ocs.stop()
    store.close()
    for (const [, peer] of opened) peer.close()
    expect(problems).toEqual([])
  })

  /** Sends an INVITE to `to`, a user part, and refuses it where it arrives. */
  async function call(
    caller: Name,
    called: Name,
    to: string,
    { from, headers = [] }: { readonly from?: string; readonly headers?: readonly string[] } = {},
  ): Promise<PeerMessage> {
    ask(caller, to, from, headers)
    const invite = await peers[called].next('INVITE')
    peers[called].reply(invite, 486, { tag: randomUUID() })
    await peers[called].next('ACK')
    await peers[caller].next(486)
    return invite
  }

  function ask(caller: Name, to: string, from?: string, headers: readonly string[] = []): void {
    const uri = to.includes(':') ? to : `sip:${to}@${address}:${port}`
    const leg = peers[caller].leg(uri)
    peers[caller].request(
      'INVITE',
      { ...leg, from: from === undefined ? leg.from : `${from};tag=${randomUUID()}` },
      { headers, body: sdp('caller') },
    )
  }

  return {
    engine,
    store,
    peers,
    records,
    call,
    ask,
    /** The status with which a call is refused. */
    async refused(caller: Name, to: string, from?: string): Promise<number> {
      ask(caller, to, from)
      return (await peers[caller].next(({ status }) => status >= 300)).status
    },
  }
}
