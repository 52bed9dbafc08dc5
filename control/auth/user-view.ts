import { fromFlag, timeToText } from '../../schema/columns.ts'
import type { UserRow } from './user-store.ts'

/** A user as the API shows it. */
export const userView = (user: UserRow) => ({
  id: user.id,
  username: user.username,
  role: user.role,
  tenant_slug: user.tenant_slug,
  is_active: fromFlag(user.is_active),
  created_at: timeToText(user.created_at),
  updated_at: timeToText(user.updated_at),
})
