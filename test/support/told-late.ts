/** A store whose commits are known late, as from a slow disk. */
import type { Store } from '../../schema/storage/store.ts'

/** The same store; its groups of writes are committed at once, and told of after `told`. */
export function withGroupsTold<S extends Store>(store: S, told: Promise<void>): S {
  const statements = new Proxy(store.statements, {
    get(target, name) {
      if (name === 'groupTransaction')
        return async (work: () => Promise<unknown>) => {
          const result = await target.groupTransaction(work)
          await told
          return result
        }
      const found: unknown = Reflect.get(target, name, target)
      return typeof found === 'function' ? (found.bind(target) as unknown) : found
    },
  })
  return { ...store, statements }
}
