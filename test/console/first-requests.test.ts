/** A page asks for the data of its screen before its script runs, and not once more. */
import { expect, test } from 'vitest'
import { firstRequests } from '../../control/console/first-requests.ts'
import { admin, shareConsole } from '../support/console-rig.ts'

const { open, signedIn } = shareConsole()

/** Each of these requests says what has begun it. */
const begun = (paths: readonly string[]): string => `performance.getEntriesByType('resource')
  .map(({ name, initiatorType }) => name.slice(location.origin.length) + ' by ' + initiatorType)
  .filter((each) => ${JSON.stringify(paths)}.some((path) => each.startsWith(path + ' ')))
  .toSorted()`

test.each([
  ['now', 'The last ten minutes'],
  ['calls', 'No call is in progress.'],
  ['customers', 'paying'],
])('the screen %s shows what the page has asked for', async (screen, text) => {
  const { page, complaints } = await signedIn({ path: '/console/account' })
  // Nothing is loaded again.
  await page.addInitScript('window.setInterval = () => 0')
  await page.goto(`/console/${screen}`)
  await page.getByText(text).first().waitFor()
  const wanted = firstRequests(screen)
  expect(wanted.length).toBeGreaterThan(1)
  expect(await page.evaluate(begun(wanted))).toEqual(
    wanted.map((path) => `${path} by link`).toSorted(),
  )
  expect(complaints).toEqual([])
})

test('after a session was ended elsewhere, whoever signs in at the reloaded page stays in', async () => {
  const { page, signIn } = await open({ path: '/console/customers' })
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  const cookies = await page.context().cookies()
  await page.evaluate(`fetch('/api/v1/auth/session', { method: 'DELETE' })`)
  // The browser still has it.
  await page.context().addCookies(cookies)
  await page.reload()
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  expect(await page.getByText('Your session has ended').count()).toBe(0)
})
