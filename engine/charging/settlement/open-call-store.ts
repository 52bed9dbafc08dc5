/** What stores ended calls, by the database. */
import { isLocal, type Store } from '../../../schema/open.ts'
import type { CallStore } from '../call-store.ts'
import { LocalCalls } from './local-calls.ts'
import { ServerCalls } from './server-calls.ts'
import type { CallStoreDeps, ServerCallsDeps } from './store-deps.ts'

export const openCallStore = ({
  store,
  owner,
  onSettled,
  ...deps
}: CallStoreDeps<Store> & Pick<ServerCallsDeps, 'owner' | 'onSettled'>): CallStore =>
  isLocal(store)
    ? new LocalCalls({ ...deps, store })
    : new ServerCalls({ ...deps, store, owner, onSettled })
