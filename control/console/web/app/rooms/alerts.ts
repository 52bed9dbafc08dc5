/** The screens of alerts, loaded together. */
export { AlertChannelsScreen } from '../../screens/alert-channels.tsx'
export { AlertRulesScreen } from '../../screens/alert-rules.tsx'
export { AlertsScreen } from '../../screens/alerts.tsx'
