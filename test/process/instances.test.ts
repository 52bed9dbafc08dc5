/** Two processes on one PostgreSQL server, which is of this file: it is stopped and started. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { findPostgres, TemporaryPostgres } from '../../engine/commands/demo/temporary-postgres.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { realTimers } from '../support/only-process.ts'
import { postgresProxy, type PostgresProxy } from '../support/postgres-proxy.ts'
import { openPeer } from '../support/scripted-node.ts'
import { type PeerMessage, SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, inOneOf, patientInstances } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)
const programs = findPostgres()

interface Answer {
  readonly status: number
  readonly code?: string
  readonly data?: unknown
}

describe.runIf(programs !== undefined || process.env['CI'] === 'true')('two instances', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nodes-'))
  let postgres: TemporaryPostgres
  let database: PostgresStatements
  let proxy: PostgresProxy
  let callee: SipPeer
  let instances: readonly TollgateProcess[] = []
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
    proxy = await postgresProxy(postgres.url)
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
    callee = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
    callee.always('OPTIONS', 200, { tag: 'probed' })
    const seed = seedFor([callee.port])
    // The first has a way to the server that can be cut.
    const first = { DATABASE_URL: proxy.url, NODE_NAME: 'sbc-1' }
    const second = { DATABASE_URL: postgres.url, NODE_NAME: 'sbc-2', EXIT_CODES: 'none' }
    const started: TollgateProcess[] = []
    for (const own of [first, second])
      started.push(await TollgateProcess.start(seed, { ...patientInstances, SECRET_KEY, ...own }))
    instances = started
    token = await at(0).createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
    // An instance that cannot ask the others admits a sixteenth.
    await database.execute('UPDATE application_key SET rate_limit_rpm = 60000')
  }, 120_000)
  afterAll(async () => {
    for (const each of instances) each.signal('SIGCONT')
    for (const each of instances) await each.stop()
    callee.close()
    proxy.close()
    await database.close()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 120_000)
  afterEach(() => proxy.mend())

  const at = (index: number): TollgateProcess => {
    const found = instances[index]
    if (found === undefined) throw new Error(`there is no node ${index}`)
    return found
  }

  const ask = async (
    index: number,
    path: string,
    options: { readonly key?: string; readonly method?: string; readonly body?: object } = {},
  ): Promise<Answer> => {
    const { key = token, body, method = body === undefined ? 'GET' : 'POST' } = options
    const response = await fetch(`http://127.0.0.1:${at(index).apiPort}${path}`, {
      method,
      headers: {
        'Content-Type': 'application/json',
        ...(path !== '/readyz' && { Authorization: `Bearer ${key}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { ...((await response.json()) as object), status: response.status }
  }

  const dial = async (tollgate: TollgateProcess) => {
    const caller = await openPeer(tollgate)
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    return { caller, leg }
  }

  /**
   * Dials again after a refusal, as the first moments after a failure may still refuse. Returns how
   * to hang up.
   */
  const talk = async (index: number): Promise<() => Promise<void>> => {
    // An instance that has started again asks in a dialog whether its party is still there.
    const isNew = (message: PeerMessage): boolean =>
      message.method === 'INVITE' && !message.get('To').includes(';tag=')
    const isRinging = (): boolean => callee.inbox.some((message) => isNew(message))
    const { caller, leg } = await eventually(async () => {
      const call = await dial(at(index))
      const isRefused = (): boolean => call.caller.inbox.some(({ status }) => status >= 400)
      await eventually(() => expect(isRinging() || isRefused()).toBe(true))
      expect(isRinging()).toBe(true)
      return call
    })
    callee.reply(await callee.next(isNew), 200, { tag: 'b', body: sdp('callee') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await callee.next('ACK')
    return async () => {
      caller.request('BYE', leg)
      callee.reply(await callee.next('BYE'), 200)
      await caller.next('200 BYE')
      calls += 1
    }
  }

  /** So many have been answered, and have ended. */
  let calls = 0

  /** Each answered call has one record, and the wallet has paid each once. */
  const booksAreRight = async (): Promise<void> => {
    const records = () =>
      database
        .prepare<{ cost_micros: number }>("SELECT * FROM cdr WHERE disposition = 'ANSWERED'")
        .all([])
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

  const isInstance = (name: string, expected: object): Promise<void> =>
    eventually(async () => {
      const { data } = await ask(name === 'sbc-1' ? 1 : 0, '/api/v1/nodes')
      const found = (data as readonly { readonly name: string }[]).find(
        (each) => each.name === name,
      )
      expect(found).toMatchObject(expected)
    })

  test('each lists both, and what differs in their settings is told in the log and at /readyz', async () => {
    for (const name of ['sbc-1', 'sbc-2'])
      await isInstance(name, { state: 'serving', epoch: 1, differing_settings: ['EXIT_CODES'] })
    const line = at(1).log.find((each) => each.includes('must be the same on all instances'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      level: 'warn',
      EXIT_CODES: { 'sbc-1': 'unset', 'sbc-2': 'none' },
    })
    const { status, data } = await ask(1, '/readyz')
    expect([status, data]).toMatchObject([200, { settings: 'different' }])
  })

  test('what is written on one holds on the other within a second: a key, a route, a ban', async () => {
    const set = { endpoint_name: 'second', set_id: 2, algorithm: 8, nodes: [{ host: '127.0.0.2' }] }
    expect((await ask(0, '/api/v1/dispatcher', { body: set })).status).toBe(201)
    const within = (check: () => Promise<void>) => eventually(check, 1_000)
    await inOneOf(3, async (attempt) => {
      const key = { name: `short ${attempt}`, kind: 'sbc', scopes: ['metrics:read'] }
      const made = await ask(0, '/api/v1/application-keys', { body: key })
      const { token: short, uuid } = made.data as { readonly token: string; readonly uuid: string }
      const isKnown = async () => (await ask(1, '/api/v1/nodes', { key: short })).status
      await within(async () => expect(await isKnown()).toBe(200))
      await ask(0, `/api/v1/application-keys/${uuid}`, { method: 'DELETE' })
      await within(async () => expect(await isKnown()).toBe(401))

      const route = { name: `help ${attempt}`, prefix: `188${attempt}`, set_id: 2, priority: 1 }
      expect((await ask(0, '/api/v1/inbound-routes', { body: route })).status).toBe(201)
      const call = { from: paying, to: `188${attempt}5550123`, source: '127.0.0.1' }
      await within(async () => {
        const { data } = await ask(1, '/api/v1/telephony/simulate', { body: call })
        expect(data).toMatchObject({ set_id: 2 })
      })

      const ban = { address: `203.0.113.${attempt}`, duration_seconds: 60 }
      expect((await ask(0, '/api/v1/guard/bans', { body: ban })).status).toBe(201)
      await within(async () => {
        const { data } = await ask(1, '/api/v1/guard/bans')
        expect(data).toContainEqual(expect.objectContaining({ source: ban.address }))
      })
    })
  })

  test('a call through either is paid from the same wallet, once; both say which instance has it', async () => {
    for (const [index, instance] of ['sbc-1', 'sbc-2'].entries()) {
      const hangUp = await talk(index)
      for (const asked of [0, 1]) {
        const live = Object.values(await ask(asked, '/api/v1/pbx/calls/active'))
        expect(live).toContainEqual(expect.objectContaining({ instance }))
      }
      await hangUp()
    }
    await booksAreRight()
    expect(instances.flatMap(({ faults }) => faults)).toEqual([])
  })

  test('a customer has as many calls at once as it may have, on both instances together', async () => {
    const { data } = await ask(0, '/api/v1/customers')
    const payer = (data as { id: number; name: string }[]).find(({ name }) => name === 'paying')
    const allow = async (limit: number): Promise<void> => {
      const body = { max_concurrent_calls: limit }
      for (const index of [0, 1])
        await ask(index, `/api/v1/customers/${payer?.id}`, { method: 'PATCH', body })
    }
    const isRefused = async (index: number): Promise<void> => {
      const { caller } = await dial(at(index))
      expect((await caller.next(({ status }) => status >= 200)).status).toBe(402)
    }
    await allow(2)
    const [one, two] = [await talk(0), await talk(1)]
    for (const index of [0, 1]) await isRefused(index)
    await one()
    const three = await talk(1)
    await isRefused(0)
    for (const hangUp of [two, three]) await hangUp()
    await allow(0)
  })

  test('a restart of PostgreSQL ends no call and loses no record; writes get 503 meanwhile', async () => {
    const ends = [await talk(0), await talk(1)]
    // A key that an instance knows is good there while the server is away.
    for (const index of [0, 1]) expect((await ask(index, '/api/v1/nodes')).status).toBe(200)
    await postgres.stop()
    for (const hangUp of ends) await hangUp()
    await eventually(() => expect(at(1).log.join()).toContain('cannot be written'))
    const refused = await ask(1, '/api/v1/tenants', { body: { slug: 'late', name: 'Late' } })
    expect(refused).toMatchObject({ status: 503, code: 'storage_unavailable' })
    expect(await ask(1, '/readyz')).toMatchObject({ data: { database: 'unavailable' } })
    await postgres.start()
    await booksAreRight()
    for (const name of ['sbc-1', 'sbc-2']) await isInstance(name, { state: 'serving', epoch: 1 })
    for (const index of [0, 1]) await (await talk(index))()
    await booksAreRight()
  })

  test('a call outlives kill -9 of its instance; one that starts while the server is away waits for it, and SIGTERM ends the wait', async () => {
    const hangUp = await talk(0)
    await at(0).kill()
    proxy.cut()
    const isWaiting = (): Promise<void> =>
      eventually(async () =>
        expect(await ask(0, '/readyz')).toMatchObject({
          status: 503,
          code: 'waiting_for_database',
        }),
      )
    const ended = at(0)
      .restart()
      .catch((error: unknown) => String(error))
    await isWaiting()
    expect(await at(0).terminate()).toBe(0)
    expect(await ended).toContain('did not start')
    const restarted = at(0).restart()
    await isWaiting()
    proxy.mend()
    await restarted
    await hangUp()
    await isInstance('sbc-1', { state: 'serving', epoch: 2 })
    await booksAreRight()
  })

  test('a third process with a name that is taken does not start', async () => {
    const environment = { DATABASE_URL: postgres.url, SECRET_KEY, NODE_NAME: 'sbc-1' }
    const third = TollgateProcess.start(seedFor([callee.port]), environment)
    await expect(third).rejects.toThrow('did not start')
  })

  test('an instance that was paused for longer than its shares last is fenced: no new call, a clear answer, its live calls end in order', async () => {
    const hangUp = await talk(1)
    at(1).signal('SIGSTOP')
    await database.execute(
      "UPDATE node SET heartbeat_at = heartbeat_at - 200000 WHERE name = 'sbc-2'",
    )
    await isInstance('sbc-2', { epoch: 2, state: 'stopped' })
    at(1).signal('SIGCONT')
    await eventually(async () =>
      expect(await ask(1, '/readyz')).toMatchObject({ status: 503, code: 'node_fenced' }),
    )
    const { caller } = await dial(at(1))
    const refused = await caller.next('503 INVITE')
    expect(refused.get('Retry-After')).not.toBe('')
    expect(refused.get('Reason')).toBe('Q.850;cause=41;text="Node Fenced"')
    await eventually(() =>
      expect(at(1).faults.join()).toContain('another process has taken over its name'),
    )
    await hangUp()
    await booksAreRight()
  })
})
