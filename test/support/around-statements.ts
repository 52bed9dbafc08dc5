/** Statements of a test that counts them, or lets them fail. */
import type { Store } from '../../schema/storage/store.ts'

type Around = <T>(work: () => Promise<T>) => Promise<T>

/** The same store, every reading and writing of which is done by `around`. */
export function aroundStatements<S extends Pick<Store, 'statements'>>(store: S, around: Around): S {
  const statements = new Proxy(store.statements, {
    get(target, name) {
      if (name !== 'prepare') {
        const found: unknown = Reflect.get(target, name, target)
        return typeof found === 'function' ? (found.bind(target) as unknown) : found
      }
      return (sql: string) => {
        const { all, arrays, get, run } = target.prepare<never>(sql)
        return {
          all: (values: never) => around(() => all(values)),
          arrays: (values: never) => around(() => arrays(values)),
          get: (values: never) => around(() => get(values)),
          run: (values: never) => around(() => run(values)),
        }
      }
    },
  })
  return { ...store, statements }
}
