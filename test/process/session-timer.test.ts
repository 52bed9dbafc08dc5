/**
 * The whole program, in this process so that a session may be shorter than the RFC's 90 seconds: a
 * phone that vanishes in mid-call is noticed, and the books are right (RFC 4028).
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../engine/config.ts'
import { startPlatform } from '../../engine/platform.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { provision } from '../support/commands-here.ts'
import { freePort } from '../support/free-port.ts'
import { ManualTime } from '../support/manual-time.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { serverRows } from '../support/server-rows.ts'
import { type PeerMessage, sdp, SipPeer } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()

/** Time of the program. It stands still while this process does, so that no party of it is late. */
function startClock(): ManualTime {
  const time = new ManualTime(Date.now())
  let seen = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    time.advance(Math.min(Math.round(now - seen), LONGEST_STEP_MS))
    seen = now
  }, 5)
  onTestFinished(() => clearInterval(timer))
  return time
}

const LONGEST_STEP_MS = 20

async function startTollgate(sessionExpiresSeconds: number) {
  const port = await freePort()
  const address = '127.0.0.1'
  const listener = {
    protocol: 'udp',
    address,
    port,
    advertisedHost: address,
    advertisedPort: port,
  } as const
  const caller = await SipPeer.openPatient(listener)
  const node = await SipPeer.openPatient(listener)
  const databasePath = join(folder, `${port}.db`)
  const database = await settingsOfDatabase(databasePath)
  const file = join(folder, `${port}.json`)
  writeFileSync(file, JSON.stringify(seedFor([node.port])))
  await provision(database, file)
  // What is provisioned is not of the future.
  const time = startClock()
  let platform = await serve(database, port, sessionExpiresSeconds, time)
  onTestFinished(async () => {
    caller.close()
    node.close()
    await platform.stop()
  })
  /** Another process goes on with what the disk has now. */
  const crash = async () => {
    const left = join(folder, `left-${port}.db`)
    for (const name of readdirSync(folder).filter((file) => file.startsWith(`${port}.db`)))
      cpSync(join(folder, name), join(folder, `left-${name}`))
    await platform.stop()
    platform = await serve({ ...database, DATABASE_PATH: left }, port, sessionExpiresSeconds, time)
  }
  /** What is stored. */
  const rows = <Row>(sql: string): Row[] => {
    const { DATABASE_URL: url } = database
    return url === undefined
      ? (platform.local?.sqlite.prepare<[], Row>(sql).all() ?? [])
      : serverRows<Row>(url, sql, [])
  }
  return { caller, node, port, rows, crash }
}

async function serve(
  database: Record<string, string>,
  port: number,
  sessionExpiresSeconds: number,
  { now, schedule }: ManualTime,
) {
  const config = readConfig({
    ...database,
    SIP_LISTEN: `udp/127.0.0.1:${port}`,
    API_LISTEN: '127.0.0.1:0',
    EDGE_LISTEN: '127.0.0.1:0',
    // The node of this test answers no probes.
    PROBE_INTERVAL_MS: '600000',
  })
  return startPlatform({
    config: { ...config, sessionExpiresSeconds },
    version: 'test',
    hostName: 'sbc-1',
    networkAddresses: () => [],
    pid: process.pid,
    now,
    steadyNow: now,
    schedule,
    random: Math.random,
    randomBytes,
    newUuid: randomUUID,
    log: () => undefined,
    announce: () => undefined,
  })
}

test.each([
  ['called', 'in mid-call'],
  ['calling', 'in mid-call'],
  ['called', 'while the process restarts after a crash'],
  ['calling', 'while the process restarts after a crash'],
] as const)(
  'the %s phone vanishes %s: the other one gets BYE, one record, and the wallet pays what it says',
  async (missing, when) => {
    const tollgate = await startTollgate(3)
    const { caller, node, port } = tollgate
    const from = `<sip:${paying}@127.0.0.1>;tag=${randomUUID()}`
    const leg = { ...caller.leg(`sip:15551112222@127.0.0.1:${port}`), from }
    caller.request('INVITE', leg, { body: sdp('offer') })
    node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
    const ok = await caller.next('200 INVITE')
    expect(ok.get('Session-Expires')).toBe('3;refresher=uas')
    caller.learn(leg, ok)
    caller.request('ACK', leg)
    await node.next('ACK')
    if (when !== 'in mid-call') await tollgate.crash()

    const [present, body] = missing === 'called' ? [caller, sdp('offer')] : [node, sdp('answer')]
    const isRefresh = (message: PeerMessage): boolean =>
      message.method === 'INVITE' && message.get('To').includes(';tag=')
    present.reply(await present.next(isRefresh), 200, { body })
    present.reply(await present.next('BYE'), 200)
    const records = () =>
      tollgate.rows<{ billsec: number; cost_micros: number }>('SELECT * FROM cdr')
    await expect.poll(records).toHaveLength(1)
    const [record] = records()
    expect(record).toMatchObject({
      disposition: 'ANSWERED',
      hangup_by: 'system',
      hangup_cause: 'RECOVERY_ON_TIMER_EXPIRE',
    })
    expect(record?.billsec).toBeGreaterThan(0)
    expect(record?.cost_micros).toBe(cents(record?.billsec ?? 0))
    const balances = tollgate.rows<{ balance_micros: number }>(
      "SELECT w.balance_micros FROM wallet w JOIN customer c ON c.id = w.customer_id WHERE c.name = 'paying'",
    )
    expect(balances).toEqual([{ balance_micros: cents(1_000) - (record?.cost_micros ?? 0) }])
  },
)
