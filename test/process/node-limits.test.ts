/** Limits and bans of two processes on one PostgreSQL database. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { openPeer } from '../support/scripted-node.ts'
import { SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, inOneOf, patienceMs, patientNodes } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)

describe.runIf(hasPostgres)('limits and bans of two nodes on one database', () => {
  let drop: () => Promise<void>
  let node: SipPeer
  let nodes: readonly TollgateProcess[] = []
  let token: string

  beforeAll(async () => {
    const database = await freshDatabase()
    drop = database.drop
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
    node = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
    node.always('OPTIONS', 200, { tag: 'probed' })
    const seed = seedFor([node.port])
    const environment = { ...patientNodes, DATABASE_URL: database.url, SECRET_KEY }
    const first = await TollgateProcess.start(seed, { ...environment, NODE_NAME: 'sbc-1' })
    const settings = { ...environment, NODE_NAME: 'sbc-2' }
    const second = await TollgateProcess.start(seed, settings, { isActivated: true })
    nodes = [first, second]
    token = await first.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
    const customers = (await ask(0, '/customers')).data as { id: number; name: string }[]
    const customer = customers.find(({ name }) => name === 'paying')
    const limit = { max_concurrent_calls: 2 }
    await writeOnBoth(`/customers/${customer?.id}`, limit)
  }, 120_000)
  afterAll(async () => {
    for (const each of nodes) await each.stop()
    node.close()
    await drop()
  }, 120_000)

  /** Where a call has waited for room in vain, others are refused at once for 0.25 s. */
  const quietTime = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 400))
  beforeEach(quietTime)

  const at = (index: number): TollgateProcess => {
    const found = nodes[index]
    if (found === undefined) throw new Error(`there is no node ${index}`)
    return found
  }

  const ask = async (
    index: number,
    path: string,
    options: { method?: string; body?: object } = {},
  ) => {
    const response = await fetch(`http://127.0.0.1:${at(index).apiPort}/api/v1${path}`, {
      method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    })
    const answer = (await response.json()) as { readonly data?: unknown }
    return { status: response.status, data: answer.data }
  }

  /** Each node has it in memory when it answers; it would follow the other one within a second. */
  const writeOnBoth = async (path: string, body: object): Promise<void> => {
    for (const index of [0, 1])
      expect((await ask(index, path, { method: 'PATCH', body })).status).toBe(200)
  }

  const dial = async (index: number) => {
    const caller = await openPeer(at(index))
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${at(index).sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    return { caller, leg }
  }

  /** A node that stands still for a moment gives nothing back, and the other one refuses: the caller dials again. */
  const dialUntilItRings = async (index: number) => {
    const isRinging = (): boolean => node.inbox.some(({ method }) => method === 'INVITE')
    for (const since = performance.now(); ; await quietTime()) {
      const call = await dial(index)
      const refusal = () => call.caller.inbox.find(({ status }) => status >= 300)
      await eventually(() => expect(isRinging() || refusal() !== undefined).toBe(true))
      if (isRinging()) return call
      if (performance.now() - since > patienceMs) throw new Error(`refused: ${refusal()?.text}`)
    }
  }

  /** Returns how to hang up. */
  const talk = async (index: number): Promise<() => Promise<void>> => {
    const { caller, leg } = await dialUntilItRings(index)
    const invite = await node.next('INVITE')
    node.reply(invite, 200, { tag: 'b', body: sdp('node') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await node.next('ACK')
    return async () => {
      caller.request('BYE', leg)
      node.reply(await node.next('BYE'), 200)
      await caller.next('200 BYE')
    }
  }

  /** By the limit. A database that stands still for a moment refuses with 503, which says nothing of it. */
  const isRefused = async (index: number): Promise<void> => {
    const statusOf = async (): Promise<number> => {
      const { caller } = await dial(index)
      return (await caller.next(({ status }) => status >= 200)).status
    }
    let status = await statusOf()
    for (const since = performance.now(); status === 503; status = await statusOf()) {
      expect(performance.now() - since).toBeLessThan(patienceMs)
      await quietTime()
    }
    expect(status).toBe(402)
  }

  test('a customer has as many calls at once as it may have, on both nodes together or on one', async () => {
    const [one, two] = [await talk(0), await talk(1)]
    await isRefused(0)
    await isRefused(1)
    await one()
    await quietTime()
    const three = await talk(1)
    await isRefused(0)
    await two()
    await three()
  })

  test('after kill -9 the calls that go on count, before the node is back and after', async () => {
    const [one, two] = [await talk(0), await talk(0)]
    await at(0).kill()
    await isRefused(1)
    await at(0).restart()
    await isRefused(1)
    await isRefused(0)
    await one()
    await quietTime()
    const three = await talk(1)
    await isRefused(0)
    await two()
    await three()
  })

  test('a node of a set has as many calls as it may have, from both nodes together', async () => {
    const customers = (await ask(0, '/customers')).data as { id: number; name: string }[]
    const customer = customers.find(({ name }) => name === 'paying')
    const allow = async (calls: number, callsOfNode: number): Promise<void> => {
      const [pbx] = (await ask(0, '/dispatcher/1/nodes')).data as { id: number }[]
      const limit = { max_concurrent_calls: calls }
      const limitOfNode = { max_calls: callsOfNode }
      await writeOnBoth(`/customers/${customer?.id}`, limit)
      await writeOnBoth(`/dispatcher/1/nodes/${pbx?.id}`, limitOfNode)
    }
    const isFull = async (index: number): Promise<void> => {
      const { caller } = await dial(index)
      expect((await caller.next(503)).get('Retry-After')).not.toBe('')
    }
    await allow(10, 2)
    const [one, two] = [await talk(0), await talk(1)]
    await isFull(0)
    await isFull(1)
    await one()
    await quietTime()
    const three = await talk(1)
    await isFull(0)
    await two()
    await three()
    await allow(2, 0)
  })

  test('a source that is banned on one node is banned on both within a second, and let in again on both', async () => {
    const listed = async (index: number) =>
      ((await ask(index, '/guard/bans')).data as { source: string }[]).map((ban) => ban.source)
    await inOneOf(3, async (attempt) => {
      const source = `203.0.113.${attempt}`
      const ban = { address: source, duration_seconds: 60 }
      expect((await ask(0, '/guard/bans', { body: ban })).status).toBe(201)
      for (const index of [0, 1])
        await eventually(async () => expect(await listed(index)).toContain(source), 1_000)
      expect((await ask(1, `/guard/bans/${source}`, { method: 'DELETE' })).status).toBe(200)
      for (const index of [0, 1])
        await eventually(async () => expect(await listed(index)).not.toContain(source), 1_000)
      expect((await ask(0, `/guard/bans/${source}`, { method: 'DELETE' })).status).toBe(404)
    })
    expect(nodes.flatMap(({ faults }) => faults)).toEqual([])
  })

  test('the requests of a key in a minute are limited on both nodes together, and each node says so', async () => {
    const body = { name: 'limited', scopes: ['customers:read'], rate_limit_rpm: 12 }
    const made = await ask(0, '/application-keys', { body })
    expect(made.status).toBe(201)
    const key = (made.data as { readonly token: string }).token
    const statuses: number[] = []
    for (let request = 0; request < 20; request += 1) {
      const response = await fetch(`http://127.0.0.1:${at(request % 2).apiPort}/api/v1/customers`, {
        headers: { Authorization: `Bearer ${key}` },
      })
      await response.body?.cancel()
      statuses.push(response.status)
      expect(response.headers.get('x-ratelimit-limit')).toBe('12')
      if (response.status === 429)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(30)
    }
    expect(statuses).toEqual([...Array(12).fill(200), ...Array(8).fill(429)])
  })

  test('with a restart on the same sockets no call is forgotten, none counts twice, and none for ever', async () => {
    const one = await talk(1)
    await at(1).restartInOrder()
    const two = await talk(1)
    await isRefused(0)
    await isRefused(1)
    await one()
    await two()
    await quietTime()
    const three = await talk(0)
    await quietTime()
    const four = await talk(0)
    await isRefused(1)
    await three()
    await four()
    expect(nodes.flatMap(({ faults }) => faults)).toEqual([])
  })
})
