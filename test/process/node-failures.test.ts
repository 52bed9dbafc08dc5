/** What nodes do when PostgreSQL, or another node, fails. The server is one of this file's own: it is stopped and started. */
import { mkdtempSync, rmSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { findPostgres, TemporaryPostgres } from '../../engine/commands/demo/temporary-postgres.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { realTimers } from '../support/only-process.ts'
import { postgresProxy, type PostgresProxy } from '../support/postgres-proxy.ts'
import { openPeer } from '../support/scripted-node.ts'
import { type Leg, SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, inOneOf, patientNodes } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)
const programs = findPostgres()
const hasPostgres = programs !== undefined || process.env['CI'] === 'true'

describe.runIf(hasPostgres)('several nodes, of which something fails', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-failures-'))
  let postgres: TemporaryPostgres
  let database: PostgresStatements
  let proxy: PostgresProxy
  let node: SipPeer
  let nodes: readonly TollgateProcess[] = []
  let token: string

  beforeAll(async () => {
    chmodSync(folder, 0o711)
    postgres = await TemporaryPostgres.start({
      programs: programs ?? '',
      folder: join(folder, 'postgres'),
      ownerPid: process.pid,
      schedule: realTimers().schedule,
    })
    database = new PostgresStatements({ url: postgres.url, connections: 2 })
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
    node = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
    node.always('OPTIONS', 200, { tag: 'probed' })
    const seed = seedFor([node.port])
    // The first has a way to the server that can be slow, or cut.
    proxy = await postgresProxy(postgres.url)
    const first = await TollgateProcess.start(seed, {
      ...patientNodes,
      DATABASE_URL: proxy.url,
      SECRET_KEY,
      NODE_NAME: 'sbc-1',
    })
    const second = await TollgateProcess.start(seed, {
      ...patientNodes,
      DATABASE_URL: postgres.url,
      SECRET_KEY,
      NODE_NAME: 'sbc-2',
    })
    nodes = [first, second]
    token = await first.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
    // A node that cannot ask the others admits a sixteenth.
    await database.execute('UPDATE application_key SET rate_limit_rpm = 60000')
  }, 120_000)
  afterAll(async () => {
    for (const each of nodes) each.signal('SIGCONT')
    for (const each of nodes) await each.stop()
    node.close()
    proxy.close()
    await database.close()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 120_000)

  afterEach(() => {
    proxy.delayMs = 0
    proxy.mend()
  })

  const at = (index: number): TollgateProcess => {
    const found = nodes[index]
    if (found === undefined) throw new Error(`there is no node ${index}`)
    return found
  }

  const ask = async (index: number, path: string, body?: object) => {
    const isPublic = path === '/readyz'
    const response = await fetch(`http://127.0.0.1:${at(index).apiPort}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(!isPublic && { Authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const parsed = (text.startsWith('{') ? JSON.parse(text) : {}) as Answer
    return { status: response.status, code: parsed.code, data: parsed.data, text }
  }

  const metric = async (index: number, name: string): Promise<string | undefined> =>
    new RegExp(`^${name} (\\S+)$`, 'm').exec((await ask(index, '/metrics')).text)?.[1]

  const dial = async (tollgate: TollgateProcess) => {
    const caller = await openPeer(tollgate)
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
    const leg: Leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    return { caller, leg }
  }

  const isRinging = (): boolean => node.inbox.some(({ method }) => method === 'INVITE')

  /** Dials again after a refusal: the first moments after a failure may still refuse. */
  const dialUntilItRings = async (tollgate: TollgateProcess) => {
    for (;;) {
      const call = await dial(tollgate)
      const isRefused = (): boolean => call.caller.inbox.some(({ status }) => (status ?? 0) >= 400)
      await eventually(() => expect(isRinging() || isRefused()).toBe(true))
      if (isRinging()) return call
    }
  }

  const talk = async (tollgate: TollgateProcess, dialling = dialUntilItRings(tollgate)) => {
    const { caller, leg } = await dialling
    const invite = await node.next('INVITE')
    node.reply(invite, 200, { tag: 'b', body: sdp('node') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await node.next('ACK')
    return async (): Promise<void> => {
      caller.request('BYE', leg)
      node.reply(await node.next('BYE'), 200)
      await caller.next('200 BYE')
    }
  }

  const records = () =>
    database
      .prepare<{ cost_micros: number; disposition: string }>(
        "SELECT * FROM cdr WHERE disposition = 'ANSWERED'",
      )
      .all([])

  /** Each answered call has one record, and the wallet has paid each once. */
  const booksAreRight = async (calls: number): Promise<void> => {
    await eventually(async () => expect(await records()).toHaveLength(calls))
    const cost = (await records()).reduce((sum, record) => sum + record.cost_micros, 0)
    const wallet = await database
      .prepare<{ balance_micros: number; ledger: number }>(
        `SELECT balance_micros, (SELECT sum(amount_micros) FROM ledger_entry WHERE wallet_id = wallet.id) AS ledger
           FROM wallet JOIN customer ON customer.id = customer_id WHERE name = 'paying'`,
      )
      .get([])
    expect(wallet).toEqual({ balance_micros: cents(1_000) - cost, ledger: cents(1_000) - cost })
  }

  const stateOf = async (index: number, name: string): Promise<NodeView | undefined> =>
    ((await ask(index, '/api/v1/nodes')).data as readonly NodeView[]).find(
      (each) => each.name === name,
    )

  const age = (name: string, ms: number): Promise<void> =>
    database.execute(`UPDATE node SET heartbeat_at = heartbeat_at - ${ms} WHERE name = '${name}'`)

  test('a route that is made on one node leads calls of the other within a second', async () => {
    const set = { endpoint_name: 'second', set_id: 2, algorithm: 8, nodes: [{ host: '127.0.0.2' }] }
    expect((await ask(0, '/api/v1/dispatcher', set)).status).toBe(201)
    await inOneOf(3, async (attempt) => {
      const prefix = `188${attempt}`
      const call = { from: paying, to: `${prefix}5550123`, source: '127.0.0.1' }
      const setOf = async () =>
        ((await ask(1, '/api/v1/telephony/simulate', call)).data as { readonly set_id: number })
          .set_id
      expect(await setOf()).toBe(1)
      const body = { name: `helpline ${attempt}`, prefix, set_id: 2, priority: 1 }
      expect((await ask(0, '/api/v1/inbound-routes', body)).status).toBe(201)
      await eventually(async () => expect(await setOf()).toBe(2), 1_000)
    })
  })

  test('while PostgreSQL answers in 300 ms calls are answered, charged and stored, and the node is ready', async () => {
    const before = (await records()).length
    // It holds what calls of the next seconds need.
    await (
      await talk(at(0))
    )()
    proxy.delayMs = 300
    const hangUp = await talk(at(0), dial(at(0)))
    expect((await ask(0, '/readyz')).status).toBe(200)
    await hangUp()
    await booksAreRight(before + 2)
    expect(at(0).faults).toEqual([])
  })

  test('a restart of PostgreSQL ends no call and loses no record; log, event and metric tell of it', async () => {
    const before = (await records()).length
    const ends = [await talk(at(0)), await talk(at(1))]
    // A key that a node knows is good there while the server is away.
    for (const index of [0, 1]) expect(await metric(index, 'tollgate_storage_available')).toBe('1')
    await postgres.stop()
    for (const hangUp of ends) await hangUp()
    const isLogged = (): boolean => at(1).log.some((line) => line.includes('cannot be written'))
    await eventually(() => expect(isLogged()).toBe(true))
    expect(await metric(1, 'tollgate_storage_available')).toBe('0')
    const refused = await ask(1, '/api/v1/tenants', { slug: 'late', name: 'Late' })
    expect([refused.status, refused.code]).toEqual([503, 'storage_unavailable'])
    expect((await ask(1, '/readyz')).data).toEqual({
      status: 'ready',
      database: 'unavailable',
      settings: 'same',
      journal: 'whole',
    })
    await postgres.start()
    await booksAreRight(before + 2)
    for (const index of [0, 1])
      await eventually(async () => {
        expect((await ask(index, '/readyz')).data).toMatchObject({ database: 'available' })
        expect(await stateOf(index, `sbc-${2 - index}`)).toMatchObject({
          state: 'serving',
          epoch: 1,
        })
      })
    for (const index of [0, 1]) await (await talk(at(index)))()
    await booksAreRight(before + 4)
  })

  test('a node that is cut off from PostgreSQL says so after ten seconds, refuses what costs money then, and serves again by itself', async () => {
    const before = (await records()).length
    const hangUp = await talk(at(0))
    proxy.cut()
    await eventually(async () => {
      const ready = await ask(0, '/readyz')
      expect([ready.status, ready.code]).toEqual([503, 'node_unheard'])
    }, 30_000)
    await eventually(async () =>
      expect(await stateOf(1, 'sbc-1')).toMatchObject({ state: 'lost', epoch: 1 }),
    )
    const { caller } = await dial(at(0))
    const answer = await caller.next('503 INVITE')
    expect(answer.text).toContain('SIP/2.0 503')
    await hangUp()
    proxy.mend()
    await booksAreRight(before + 1)
    await eventually(async () => expect((await ask(0, '/readyz')).status).toBe(200))
    await (
      await talk(at(0))
    )()
    await booksAreRight(before + 2)
  })

  test('a node that starts while the server is away waits for it: its call goes on then, and SIGTERM ends the wait', async () => {
    const before = (await records()).length
    const hangUp = await talk(at(0))
    await at(0).kill()
    proxy.cut()
    const isWaiting = (): Promise<void> =>
      eventually(async () => {
        const ready = await ask(0, '/readyz')
        expect([ready.status, ready.code]).toEqual([503, 'waiting_for_database'])
      })
    const calledOff = at(0).restart()
    const ended = calledOff.catch((error: unknown) => String(error))
    await isWaiting()
    expect(await at(0).terminate()).toBe(0)
    expect(await ended).toContain('did not start')
    const restarted = at(0).restart()
    await isWaiting()
    proxy.mend()
    await restarted
    await hangUp()
    await booksAreRight(before + 1)
  })

  test('a node that was paused for half a minute goes on as the same run, with its calls and its shares', async () => {
    const before = (await records()).length
    const [hangUp, other] = [await talk(at(1)), await talk(at(1))]
    at(1).signal('SIGSTOP')
    await age('sbc-2', 30_000)
    await eventually(async () =>
      expect(await stateOf(0, 'sbc-2')).toMatchObject({ state: 'lost', epoch: 1 }),
    )
    // The other one looks for nodes that are gone every second, and takes nothing of this one.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    const waiting = hangUp()
    at(1).signal('SIGCONT')
    await waiting
    await eventually(async () => {
      expect((await ask(1, '/readyz')).status).toBe(200)
      expect(await stateOf(0, 'sbc-2')).toMatchObject({ state: 'serving', epoch: 1 })
    })
    await (
      await talk(at(1))
    )()
    await other()
    await booksAreRight(before + 3)
    expect(await metric(1, 'tollgate_process_fenced')).toBe('0')
  })

  test('a node that was paused for longer than its shares last is fenced: no new call, a clear answer, its live calls end in order', async () => {
    const before = (await records()).length
    const hangUp = await talk(at(1))
    at(1).signal('SIGSTOP')
    await age('sbc-2', 200_000)
    await eventually(async () =>
      expect(await stateOf(0, 'sbc-2')).toMatchObject({ epoch: 2, state: 'stopped' }),
    )
    at(1).signal('SIGCONT')
    await eventually(async () => {
      const ready = await ask(1, '/readyz')
      expect([ready.status, ready.code]).toEqual([503, 'node_fenced'])
    })
    const { caller } = await dial(at(1))
    const refused = await caller.next('503 INVITE')
    expect(refused.get('Retry-After')).not.toBe('')
    expect(refused.get('Reason')).toBe('Q.850;cause=41;text="Node Fenced"')
    const denials = database.prepare<{ readonly denial_code: string }>(
      'SELECT denial_code FROM cdr WHERE denial_code IS NOT NULL ORDER BY id DESC LIMIT 1',
    )
    await eventually(async () =>
      expect(await denials.all([])).toEqual([{ denial_code: 'node_fenced' }]),
    )
    await expect
      .poll(() => at(1).faults.join())
      .toContain('another process has taken over its name')
    expect(await metric(1, 'tollgate_process_fenced')).toBe('1')
    await hangUp()
    await booksAreRight(before + 1)
  })

  test('a node that comes back with an old journal, after what it held was freed, settles its call once', async () => {
    const before = (await records()).length
    await at(1).terminate()
    await at(1).restart()
    const hangUp = await talk(at(1))
    await at(1).kill()
    await age('sbc-2', 200_000)
    const shares = () =>
      database
        .prepare<{ node: string }>(
          "SELECT * FROM share WHERE kind = 'wallet' AND node = 'sbc-2' AND amount <> 0",
        )
        .all([])
    await eventually(async () => expect(await shares()).toEqual([]))
    await at(1).restart()
    await hangUp()
    await booksAreRight(before + 1)
    await eventually(async () =>
      expect(await stateOf(0, 'sbc-2')).toMatchObject({ state: 'serving' }),
    )
  })
})

interface Answer {
  readonly code?: string
  readonly data?: unknown
}

interface NodeView {
  readonly name: string
  readonly state: string
  readonly epoch: number
}
