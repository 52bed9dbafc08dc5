/** Names of keys that resemble a wrong one. */
import type { KeyFilter } from '../../auth/key-store.ts'
import { didYouMean } from '../../../schema/rules/did-you-mean.ts'
import type { ToolUse } from '../tool.ts'

const MAX_KEYS = 500

/** Of the keys that `filter` lets the caller see; '' when none is close. */
export async function similarKeys(
  wrong: string,
  filter: KeyFilter,
  { keys, now }: Pick<ToolUse, 'keys' | 'now'>,
): Promise<string> {
  const { keys: found } = await keys.list(filter, now(), { limit: MAX_KEYS, offset: 0 })
  return didYouMean(
    wrong,
    found.map(({ name }) => name),
  )
}
