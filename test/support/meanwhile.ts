/** What happens in the middle of a search: work between two of its statements. */
import type { CallSources } from '../../control/reports/call-filters.ts'

/** The same place; `work` is done once, before the first statement with this table is run. */
export function meanwhile(
  { store, sums, steadyNow }: CallSources,
  table: string,
  work: () => Promise<unknown>,
): CallSources {
  let begun: Promise<unknown> | undefined
  const later =
    <Given extends unknown[], T>(run: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      await (begun ??= work())
      return run(...given)
    }
  const watched = (readable: CallSources['store']): CallSources['store'] => {
    const { statements } = readable
    const { copied } = statements
    const prepare: typeof statements.prepare = (text) => {
      const prepared = statements.prepare<never>(text)
      if (!text.includes(table)) return prepared
      const { all, get, arrays, run } = prepared
      return { all: later(all), get: later(get), arrays: later(arrays), run: later(run) }
    }
    const copy = copied?.bind(statements)
    const own = {
      prepare,
      copied: copy && ((text: string) => (text.includes(table) ? later(copy) : copy)(text)),
    }
    const proxy = new Proxy(statements, {
      get(target, name) {
        const value: unknown = Reflect.get(name in own ? own : target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    return { ...readable, statements: proxy }
  }
  const first = watched(store)
  return { store: first, sums: sums === store ? first : watched(sums), steadyNow }
}
