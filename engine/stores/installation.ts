/** The instances that share a database, as phones need them. */
import type { InstanceStatus } from '../../schema/contracts/instances.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { Installation } from '../registrar/hop/peer-instances.ts'
import type { OwnInstance } from './stores.ts'

/** Three heartbeats: this instance hears of no other one either. */
const UNHEARD_MS = 3_000

/** While the database server is away all instances seem lost: none is given up for that. */
export function installationOf(
  { secrets }: Pick<Store, 'secrets'>,
  instance: Pick<OwnInstance, 'identity' | 'list' | 'heartbeatAgeMs'>,
): Installation {
  const isAlive = (state: InstanceStatus['state']): boolean =>
    state === 'serving' ||
    state === 'draining' ||
    (state === 'lost' && instance.heartbeatAgeMs >= UNHEARD_MS)
  return {
    self: instance.identity.name,
    key: secrets.keyFor('nodes'),
    instances: () =>
      instance
        .list()
        .map(({ name, sipUri, sipAddresses: addresses, state, heartbeatAt, epoch }) => ({
          name,
          epoch,
          sipUri,
          addresses,
          heartbeatAt,
          isAlive: isAlive(state),
        })),
  }
}
