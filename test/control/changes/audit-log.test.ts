import { describe, expect, test } from 'vitest'
import { auditedActor, type AuditEntry, AuditLog } from '../../../control/changes/audit.ts'
import type { Store } from '../../../schema/open.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { all } from '../../../schema/sql/query.ts'
import { eachDatabase } from '../../support/shared-database.ts'

const entry = (target: string, outcome: AuditEntry['outcome'] = 'success'): AuditEntry => ({
  at: 0,
  ...auditedActor(undefined),
  address: '192.0.2.1',
  action: 'POST /x',
  target,
  outcome,
  status: 200,
  code: null,
  correlation_id: 'x',
  before_digest: null,
  after_digest: null,
  change_id: null,
  reason: null,
})
const targets = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `/${index}`)
const stored = async (store: Store): Promise<readonly string[]> =>
  (await all(store, store.db.selectFrom('audit_entry').select('target').orderBy('id'))).map(
    ({ target }) => target,
  )

/** Statements that are counted, and that fail while `isAway`. */
function watched(store: Store) {
  const state = { isAway: false, statements: 0 }
  const prepare: Store['statements']['prepare'] = (sql) => {
    const statement = store.statements.prepare(sql)
    return {
      ...(statement as ReturnType<typeof store.statements.prepare<never>>),
      run: (values) => {
        state.statements += 1
        return state.isAway
          ? Promise.reject(new DatabaseUnavailable('away'))
          : statement.run(values)
      },
    }
  }
  const { statements } = store
  const made: Store = {
    ...store,
    statements: {
      prepare,
      lockedTransaction: (work) => statements.lockedTransaction(work),
      transaction: (work) => statements.transaction(work),
      afterCommit: (work) => statements.afterCommit(work),
      notify: (...notice) => statements.notify(...notice),
      prepareRows: (text) => statements.prepareRows(text),
      isShared: statements.isShared,
    },
  }
  return { state, store: made }
}

describe.each(eachDatabase)('the audit log on $database', ({ open }) => {
  test('many entries at once are stored by a few statements, in their order', async () => {
    const { state, store } = watched(await open())
    const log = new AuditLog(store, () => expect.fail('an entry is lost'))
    await Promise.all(targets(250).map((target) => log.record(entry(target))))
    expect(await stored(store)).toEqual(targets(250))
    expect(state.statements).toBeLessThanOrEqual(4)
  })

  test('an entry that can never be stored is told, and holds up no other', async () => {
    const store = await open()
    const lost: string[] = []
    const log = new AuditLog(store, ({ target }) => lost.push(target))
    const wrong = 'unheard of' as AuditEntry['outcome']
    await Promise.all([
      log.record(entry('/a')),
      log.record(entry('/wrong', wrong)),
      log.record(entry('/b')),
    ])
    expect(await stored(store)).toEqual(['/a', '/b'])
    expect(lost).toEqual(['/wrong'])
  })

  test('while the database is away entries wait, and those beyond the bound are told', async () => {
    const { state, store } = watched(await open())
    const lost: string[] = []
    const log = new AuditLog(store, ({ target }) => lost.push(target))
    state.isAway = true
    for (const target of targets(10_002)) await log.record(entry(target))
    expect(lost).toEqual(['/0', '/1'])
    state.isAway = false
    expect(await log.flush()).toBe(true)
    expect(await stored(store)).toEqual(targets(10_002).slice(2))
  })
})
