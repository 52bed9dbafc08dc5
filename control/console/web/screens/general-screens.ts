/** The screens that follow from the definition of a noun, for the menu. */
import type { GeneralScreen } from '../api/views.ts'

/** `build.mjs` puts them here; a test of a part of the console has none. */
declare const GENERAL_SCREENS: readonly GeneralScreen[] | undefined

export const generalScreens: readonly GeneralScreen[] =
  typeof GENERAL_SCREENS === 'undefined' ? [] : GENERAL_SCREENS

/** Its name in addresses. */
export const generalName = ({ many }: GeneralScreen): string =>
  many.replaceAll(' ', '-').toLowerCase()

/** `contacts`: Contacts. */
export const titleOf = (many: string): string => `${many.charAt(0).toUpperCase()}${many.slice(1)}`
