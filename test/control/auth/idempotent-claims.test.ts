/** The same `Idempotency-Key` at several nodes of one database. */
import { errorHandler } from '../../../control/http/front.ts'
import { randomBytes } from 'node:crypto'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { readBody } from '../../../control/http/body.ts'
import type { ControlEnv } from '../../../control/http/control-env.ts'
import { Idempotency } from '../../../control/auth/idempotency.ts'
import type { NodeIdentity } from '../../../schema/contracts/nodes.ts'
import { registerNode } from '../../../schema/nodes/node-registry.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute } from '../../../schema/sql/query.ts'
import { deferred } from '../../support/deferred.ts'
import { serve } from '../../support/in-memory-http.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

const minute = 60_000

const anyRun: NodeIdentity = { name: 'sbc-9', epoch: 1 }

function nodeOn(store: Store, work: () => Promise<number> = async () => 201, run = anyRun) {
  const clock = { now: 0 }
  const carried: string[] = []
  const idempotency = new Idempotency(store, () => clock.now, randomBytes, run)
  const app = new Hono<ControlEnv>()
  app.onError(errorHandler(() => undefined))
  app.use((c, next) => {
    c.set('principal', { actor: 'user:ada', tenantId: null } as never)
    return next()
  })
  app.post('/orders', idempotency.once(), async (c) => {
    const body = String(await readBody(c))
    carried.push(body)
    return c.json({ order: body, number: carried.length }, (await work()) as 201)
  })
  const served = serve(app)
  const post = async (body = 'a') => {
    const headers = { 'Idempotency-Key': 'order-1' }
    const answer = await served.request('/orders', { method: 'POST', body, headers })
    const { code, order } = (await answer.json()) as { code?: string; order?: string }
    return { status: answer.status, code, order, again: answer.headers.get('retry-after') }
  }
  return { clock, carried, idempotency, post }
}

describe.runIf(hasPostgres)('an Idempotency-Key at several nodes', () => {
  const open = async (work?: () => Promise<number>) => {
    const database = await sharedDatabase()
    const store = await database.open()
    const claims = () => all(store, store.db.selectFrom('idempotent_claim').select('operation'))
    return { here: nodeOn(store, work), there: nodeOn(await database.open(), work), claims }
  }

  test('one node carries it out, the other one answers that it is in progress, then the same answer', async () => {
    const [begun, end] = [deferred(), deferred()]
    const { here, there, claims } = await open(async () => {
      begun.resolve()
      await end.promise
      return 201
    })
    const first = here.post()
    await begun.promise
    expect(await there.post()).toMatchObject({
      status: 409,
      code: 'idempotency_in_progress',
      again: '1',
    })
    expect(await there.post('b')).toMatchObject({ status: 409, code: 'idempotency_conflict' })
    end.resolve()
    expect(await first).toMatchObject({ status: 201, order: 'a' })
    expect(await there.post()).toMatchObject({ status: 201, order: 'a' })
    expect(await there.post('b')).toMatchObject({ status: 409, code: 'idempotency_conflict' })
    expect([here.carried, there.carried, await claims()]).toEqual([['a'], [], []])
  })

  test('of many at once at two nodes, one is carried out', async () => {
    const { here, there } = await open()
    const posts = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? here : there).post())
    const answers = await Promise.all(posts)
    expect([...here.carried, ...there.carried]).toEqual(['a'])
    for (const { status, code } of answers)
      expect([[201, undefined].join(), [409, 'idempotency_in_progress'].join()]).toContain(
        [status, code].join(),
      )
  })

  test('after a server error, another node may carry it out', async () => {
    const results = [500, 201]
    const { here, there } = await open(async () => results.shift() ?? 500)
    expect((await here.post()).status).toBe(500)
    expect((await there.post()).status).toBe(201)
  })

  test('what a node has begun when it dies is free after five minutes', async () => {
    const database = await sharedDatabase()
    const dead = nodeOn(await database.open(), () => new Promise(() => undefined))
    const alive = nodeOn(await database.open())
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    expect((await alive.post()).status).toBe(409)
    alive.clock.now = 5 * minute
    expect((await alive.post()).status).toBe(201)
  })

  test('starts of other nodes, and of one with another disk that takes its name, do not end it', async () => {
    const database = await sharedDatabase()
    const store = await database.open()
    const start = (name: string, installId: string): Promise<NodeIdentity> =>
      registerNode(store, { name, installId, address: '', version: '' })
    const run = await start('sbc-1', 'disk 1')
    const dead = nodeOn(await database.open(), () => new Promise(() => undefined), run)
    const alive = nodeOn(store, undefined, await start('sbc-2', 'disk 2'))
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    await start('sbc-2', 'disk 2')
    await execute(store, store.db.updateTable('node').set({ heartbeat_at: 1 }))
    // One that has stood still for long may go on, and does what it has begun.
    await start('sbc-1', 'disk 3')
    expect((await alive.post()).status).toBe(409)
  })

  test('it is free at once when that node starts again on its disk, which shows that the run before is dead', async () => {
    const database = await sharedDatabase()
    const store = await database.open()
    const node = { name: 'sbc-1', installId: 'disk 1', address: '', version: '' }
    const dead = nodeOn(
      await database.open(),
      () => new Promise(() => undefined),
      await registerNode(store, node),
    )
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    const next = nodeOn(store, undefined, await registerNode(store, node))
    expect((await next.post()).status).toBe(201)
    expect(next.carried).toEqual(['a'])
  })
})
