/**
 * One instance on a database in which other instances have `elsewhere` of everything: it answers
 * when the test says so.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ShareKind } from '../../engine/shares/instance-share.ts'
import { limitShares, InstanceShares } from '../../engine/shares/instance-shares.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { SqlValue } from '../../schema/sql/statements.ts'
import { ManualTime } from './manual-time.ts'

interface Asked {
  readonly name: string
  readonly used: number
  readonly base: number
  readonly extra: number
  readonly at_most: number | null
  readonly version: number
}

export function shareDatabase(elsewhere = 0, kind: ShareKind = limitShares) {
  const time = new ManualTime(0)
  const instance = { isHolding: true }
  /** The money of each wallet in the database. */
  const database = { bound: 0, elsewhere, isThere: false }
  const amounts = new Map<string, number>()
  const versions = new Map<string, number>()
  /** The rows that were stored and freed, in this order. */
  const done: string[] = []
  let answered = Promise.resolve()
  const store = (name: string, amount: number) => {
    amounts.set(name, amount)
    const version = (versions.get(name) ?? 0) + 1
    versions.set(name, version)
    return { amount, version }
  }
  const take = async (asked: readonly Asked[]) => {
    const rows = asked.map(({ name, used, base, extra, at_most }) => {
      const room = Math.max(0, (at_most ?? database.bound) - database.elsewhere)
      const kept = at_most === null ? Math.min(used, amounts.get(name) ?? 0) : used
      const granted = Math.max(kept, Math.min(room, base + extra))
      const { version: stored_as } = store(name, granted)
      done.push(`${name}: ${granted}`)
      return { of_resource: name, granted, elsewhere: database.elsewhere, stored_as, is_of_day: 0 }
    })
    await answered
    return rows
  }
  const statements = {
    isShared: true,
    prepare: (sql: string) => ({
      all: ([asked]: readonly SqlValue[]) => {
        if (sql !== 'SELECT 1') return take(JSON.parse(String(asked)) as Asked[])
        return database.isThere ? Promise.resolve([]) : new Promise(() => undefined)
      },
      run: async () => {
        if (sql.includes('process <> $3')) done.push('others freed')
        return 0
      },
    }),
  }
  const shares = new InstanceShares(kind, {
    store: { statements } as unknown as Store,
    now: time.now,
    schedule: time.schedule,
    log: () => undefined,
    members: {
      name: 'a',
      process: '2',
      canHold: () => instance.isHolding,
      size: () => 1,
      gone: () => [],
      notices: { on: () => () => undefined, notify: () => undefined },
    },
  })
  return {
    shares,
    instance,
    time,
    database,
    amounts,
    done,
    /** Settlement has committed a debit; returns what tells this instance of it. */
    debit: (resource: string, spent: number): (() => void) => {
      database.bound -= spent
      const left = store(resource, Math.max(0, (amounts.get(resource) ?? 0) - spent))
      return () => shares.settled([{ resource, spent, ...left }])
    },
    /** Answers wait until what it returns is called; with `fail` the statement then fails. */
    delayAnswers: (how: 'answer' | 'fail' = 'answer'): (() => void) => {
      let end = (): void => undefined
      answered = new Promise((resolve, reject) => {
        end = () => {
          if (how === 'answer') return resolve()
          answered = Promise.resolve()
          reject(new Error('the server is away'))
        }
      })
      return () => end()
    },
    /** Statements have their turns on the way. */
    pass: async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 10) {
        time.advance(10)
        await nextTurn()
      }
    },
  }
}
