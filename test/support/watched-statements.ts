/**
 * Statements of a test that lets time pass: it goes on when none of them runs, and none follows.
 */
import type {
  PreparedStatement,
  JsonRow,
  RowsText,
  Statements,
} from '../../schema/sql/statements.ts'
import { turnOfEventLoop } from './waiting.ts'

/** The same statements, and when none of them runs any more. */
export function watched<S extends Statements>(
  statements: S,
): {
  readonly statements: S
  readonly settled: () => Promise<void>
  readonly whenIdle: () => Promise<void>
} {
  const now = { running: 0, begun: 0 }
  let isOver = false
  let idle = (): void => undefined
  async function counted<T>(work: () => Promise<T>): Promise<T> {
    if (isOver) throw new Error('the test is over, and its database is closed')
    now.running += 1
    now.begun += 1
    try {
      return await work()
    } finally {
      now.running -= 1
      if (now.running === 0) idle()
    }
  }
  const prepare = <R>(sql: string): PreparedStatement<R> => {
    const prepared = statements.prepare<R>(sql)
    return {
      all: (values) => counted(() => prepared.all(values)),
      get: (values) => counted(() => prepared.get(values)),
      arrays: (values) => counted(() => prepared.arrays(values)),
      run: (values) => counted(() => prepared.run(values)),
    }
  }
  const prepareRows = (text: RowsText) => {
    const prepared = statements.prepareRows(text)
    return (rows: readonly JsonRow[]) => counted(() => prepared(rows))
  }
  const proxy = new Proxy(statements, {
    get(target, name) {
      if (name === 'prepare') return prepare
      if (name === 'prepareRows') return prepareRows
      const found: unknown = Reflect.get(target, name, target)
      if (typeof found !== 'function') return found
      return (...given: unknown[]) =>
        counted(async () => (await Reflect.apply(found, target, given)) as unknown)
    },
  })
  const whenIdle = async (): Promise<void> => {
    while (now.running > 0)
      await new Promise<void>((resolve) => {
        idle = resolve
      })
    isOver = true
  }
  const settled = async (): Promise<void> => {
    for (let seen = -1; seen !== now.begun || now.running > 0;) {
      seen = now.begun
      for (let turn = 0; turn < 3; turn += 1) await turnOfEventLoop()
    }
  }
  return { statements: proxy, settled, whenIdle }
}
